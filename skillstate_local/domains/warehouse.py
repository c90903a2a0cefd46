"""The Warehouse domain of SkillExecBench: 500 shelves, each holding one item or nothing.

Σ is sparse: an empty shelf is an absent key. Preconditions state only what the warehouse itself would refuse or what
cannot be known from Σ_t and O_t; none says which action an event calls for.
"""

from __future__ import annotations

from skillstate_local.domains.action import ActionTemplate, Argument, Entry
from skillstate_local.domains.base import Domain, Example
from skillstate_local.domains.observation import Event, ObservationFormat
from skillstate_local.state.schema import Id, Permission, Record, Scalar, Schema, Table, Vocabulary
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Union, ValuesOf

SHELF_COUNT = 500

SHELVES = Vocabulary("shelf", members=tuple(f"shelf_{number}" for number in range(SHELF_COUNT)))
ITEMS = Vocabulary("item", pattern="item_(0|[1-9][0-9]{0,5})")

EMPTY_SHELF = Minus(Members("shelf"), KeysOf("inventory"))
NAMED_ITEM = Union((Seen("item"), ValuesOf("inventory", at=Seen("shelf"))))
UNSTORED_ITEM = Minus(Seen("item"), ValuesOf("inventory"))

INVENTORY = Table(
    keys="shelf",
    value=Scalar(Id("item"), values=NAMED_ITEM),
    max_entries=SHELF_COUNT,
    insert=Permission.ALLOWED,
    update=Permission.NEVER,
    delete=Permission.GROUNDED,
    max_inserts=1,
    max_deletes=1,
    description="which item each occupied shelf holds; an empty shelf has no entry",
)

ACTIONS = (
    ActionTemplate(
        "Store {item} {shelf}",
        {"item": Argument(Id("item"), UNSTORED_ITEM), "shelf": Argument(Id("shelf"), EMPTY_SHELF)},
        effect={"inventory": {"{shelf}": "{item}"}},
        description="put an item from the dock on an empty shelf",
    ),
    ActionTemplate(
        "Ship {item} {shelf}",
        {"item": Argument(Id("item")), "shelf": Argument(Id("shelf"))},
        joint=(Entry("inventory", key="shelf", value="item"),),
        effect={"inventory": {"{shelf}": None}},
        description="send out the item that lies on this shelf",
    ),
    ActionTemplate(
        "Move {item} {old} {new}",
        {"item": Argument(Id("item")), "old": Argument(Id("shelf")), "new": Argument(Id("shelf"), EMPTY_SHELF)},
        joint=(Entry("inventory", key="old", value="item"),),
        effect={"inventory": {"{old}": None, "{new}": "{item}"}},
        description="carry an item from its shelf to an empty one",
    ),
    ActionTemplate("Wait", description="do nothing in this step"),
)

OBSERVATIONS = ObservationFormat(
    events=(
        Event("receive", r"Shipment arrived containing (?P<item>item_[0-9]{1,6})\."),
        Event("order", r"Customer ordered (?P<item>item_[0-9]{1,6})\."),
        Event("maintenance", r"Maintenance required on (?P<shelf>shelf_[0-9]{1,3})\."),
    ),
    result_prefixes=("Success:", "Error:"),
    noise_header="--- BACKGROUND TELEMETRY ---",
)

INSTRUCTIONS = """\
You run a warehouse with 500 shelves, shelf_0 to shelf_499. A shelf holds one item or is empty.
In every step you read the state and one observation, and you choose one action.

Events and what they ask for:
- "Shipment arrived containing X." means X waits on the dock. Store it on an empty shelf.
- "Customer ordered X." means X must leave. Ship it from the shelf that holds it.
- "Maintenance required on S." means shelf S must be emptied. Move its item to an empty shelf.
The result of the previous action may stand before the event; it begins with "Success:" or "Error:".

Actions, written exactly like this:
- Store <item> <empty shelf>
- Ship <item> <its shelf>
- Move <item> <its shelf> <empty shelf>
- Wait

The state is {"inventory":{<shelf>:<item>}} and lists occupied shelves only.
A state patch is merged into the state: a key with a value is added, a key with null is removed, and every key that
the patch leaves out stays as it is. So name only the shelves that change."""

EXAMPLES = (
    Example(
        state={"inventory": {"shelf_3": "item_8"}},
        observation="Shipment arrived containing item_9.",
        patch={"inventory": {"shelf_0": "item_9"}},
        action="Store item_9 shelf_0",
        reasoning="item_9 is on the dock and shelf_0 is empty.",
    ),
    Example(
        state={"inventory": {"shelf_0": "item_9", "shelf_3": "item_8"}},
        observation="Success: Stored item_9 in shelf_0.\nCustomer ordered item_8.",
        patch={"inventory": {"shelf_3": None}},
        action="Ship item_8 shelf_3",
        reasoning="item_8 is on shelf_3.",
    ),
    Example(
        state={"inventory": {"shelf_0": "item_9"}},
        observation="Success: Shipped item_8 from shelf_3.\nMaintenance required on shelf_0.",
        patch={"inventory": {"shelf_0": None, "shelf_1": "item_9"}},
        action="Move item_9 shelf_0 shelf_1",
        reasoning="shelf_0 holds item_9 and shelf_1 is empty.",
    ),
)

WAREHOUSE = Domain(
    name="warehouse",
    schema=Schema(Record({"inventory": INVENTORY}), {"shelf": SHELVES, "item": ITEMS}),
    actions=ACTIONS,
    observations=OBSERVATIONS,
    instructions=INSTRUCTIONS,
    examples=EXAMPLES,
    initial_state={"inventory": {}},
)
