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

ITEMS = Vocabulary("item", pattern="item_(0|[1-9][0-9]{0,5})")

EMPTY_SHELF = Minus(Members("shelf"), KeysOf("inventory"))
NAMED_ITEM = Union((Seen("item"), ValuesOf("inventory", at=Seen("shelf"))))
UNSTORED_ITEM = Minus(Seen("item"), ValuesOf("inventory"))

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
        Event("maintenance", r"Maintenance required on (?P<shelf>shelf_[0-9]{1,4})\."),
    ),
    result_prefixes=("Success:", "Error:"),
    noise_header="--- BACKGROUND TELEMETRY ---",
)

INSTRUCTIONS = """\
You run a warehouse with shelves shelf_0 to shelf_499. A shelf holds one item or is empty. \
Read the state and the observation, then answer with one action.

Events:
- "Shipment arrived containing X.": Store X on an empty shelf.
- "Customer ordered X.": Ship X from the shelf that holds it.
- "Maintenance required on S.": Move the item on S to an empty shelf.

Actions: Store <item> <empty shelf> | Ship <item> <its shelf> | Move <item> <its shelf> <empty shelf> | Wait

The state lists occupied shelves only. A patch is merged into it: a shelf with an item is added, a shelf with null \
is removed, every shelf that is not named stays as it is. Name only what changes."""

EXAMPLES = (
    Example(
        state={"inventory": {}},
        observation="Shipment arrived containing item_41.",
        patch={"inventory": {"shelf_0": "item_41"}},
        action="Store item_41 shelf_0",
        reasoning="item_41 is on the dock and shelf_0 is empty.",
    ),
    Example(
        state={"inventory": {"shelf_0": "item_41", "shelf_3": "item_8"}},
        observation="Success: Stored item_41 in shelf_0.\nMaintenance required on shelf_3.",
        patch={"inventory": {"shelf_3": None, "shelf_1": "item_8"}},
        action="Move item_8 shelf_3 shelf_1",
        reasoning="shelf_3 holds item_8 and shelf_1 is empty.",
    ),
    Example(
        state={"inventory": {"shelf_0": "item_41", "shelf_1": "item_8"}},
        observation="Success: Moved item_8 from shelf_3 to shelf_1.\nCustomer ordered item_41.",
        patch={"inventory": {"shelf_0": None}},
        action="Ship item_41 shelf_0",
        reasoning="item_41 is on shelf_0.",
    ),
    Example(
        state={"inventory": {"shelf_1": "item_8"}},
        observation="Success: Shipped item_41 from shelf_0.\nShipment arrived containing item_52.",
        patch={"inventory": {"shelf_0": "item_52"}},
        action="Store item_52 shelf_0",
        reasoning="item_52 is on the dock and shelf_0 is empty.",
    ),
    Example(
        state={"inventory": {"shelf_0": "item_52", "shelf_1": "item_8"}},
        observation="Success: Stored item_52 in shelf_0.\nMaintenance required on shelf_0.",
        patch={"inventory": {"shelf_0": None, "shelf_2": "item_52"}},
        action="Move item_52 shelf_0 shelf_2",
        reasoning="shelf_0 holds item_52 and shelf_2 is empty.",
    ),
    Example(
        state={"inventory": {"shelf_1": "item_8", "shelf_2": "item_52"}},
        observation="Success: Moved item_52 from shelf_0 to shelf_2.\nCustomer ordered item_8.",
        patch={"inventory": {"shelf_1": None}},
        action="Ship item_8 shelf_1",
        reasoning="item_8 is on shelf_1.",
    ),
)


def warehouse_domain(shelf_count: int = SHELF_COUNT) -> Domain:
    """The domain with ``shelf_count`` shelves; the instructions speak of the benchmark's 500."""
    shelves = Vocabulary("shelf", members=tuple(f"shelf_{number}" for number in range(shelf_count)))
    inventory = Table(
        keys="shelf",
        value=Scalar(Id("item"), values=NAMED_ITEM),
        max_entries=shelf_count,
        insert=Permission.ALLOWED,
        update=Permission.NEVER,
        delete=Permission.GROUNDED,
        max_inserts=1,
        max_deletes=1,
        description="which item each occupied shelf holds; an empty shelf has no entry",
    )
    return Domain(
        name="warehouse",
        schema=Schema(Record({"inventory": inventory}), {"shelf": shelves, "item": ITEMS}),
        actions=ACTIONS,
        observations=OBSERVATIONS,
        instructions=INSTRUCTIONS,
        examples=EXAMPLES,
        initial_state={"inventory": {}},
    )


WAREHOUSE = warehouse_domain()
