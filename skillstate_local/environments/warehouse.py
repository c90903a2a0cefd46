"""The Warehouse world, closed loop.

The seed alone fixes T events on a reference world in which every event succeeds; they name items, never shelves. The
agent's world then shows each event as it stands there: where the item really is, or nowhere (a void event).
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

from skillstate_local.domains.base import Domain
from skillstate_local.domains.warehouse import SHELF_COUNT, WAREHOUSE
from skillstate_local.environments.base import OracleTurn, Receipt
from skillstate_local.errors import UsageError
from skillstate_local.state.canonical import Json

MAX_PREFILL = 400
MAX_HORIZON = 10_000


class Kind(StrEnum):
    """What can happen in a warehouse."""

    RECEIVE = "receive"
    ORDER = "order"
    MAINTENANCE = "maintenance"


class WarehouseEvent(NamedTuple):
    """One event of the reference world."""

    kind: Kind
    item: str


def warehouse_events(seed: int, horizon: int, prefill: int = 0) -> tuple[WarehouseEvent, ...]:
    """The event stream of a seed: uniform over Receive and, if an item is live, Order and Maintenance.

    One shelf stays empty, because a Move needs it: with the others full nothing arrives.
    """
    rng = random.Random(f"warehouse events {seed}")
    live = [f"item_{number}" for number in range(1, prefill + 1)]
    fresh = prefill + 1
    events: list[WarehouseEvent] = []
    for _ in range(horizon):
        full = len(live) >= SHELF_COUNT - 1
        kinds = (Kind.ORDER, Kind.MAINTENANCE) if full else (Kind.RECEIVE, Kind.ORDER, Kind.MAINTENANCE)
        kind = rng.choice(kinds) if live else Kind.RECEIVE
        if kind is Kind.RECEIVE:
            item = f"item_{fresh}"
            fresh += 1
            live.append(item)
        else:
            index = rng.randrange(len(live))
            item = live.pop(index) if kind is Kind.ORDER else live[index]
        events.append(WarehouseEvent(kind, item))
    return tuple(events)


def stocked_shelves(seed: int, prefill: int) -> dict[str, str]:
    """Where the items of a prefilled warehouse lie at the start."""
    shelves = random.Random(f"warehouse stock {seed}").sample(range(SHELF_COUNT), prefill)
    return {f"shelf_{shelf}": f"item_{number}" for number, shelf in enumerate(shelves, 1)}


class WarehouseEnvironment:
    """The agent's world under one seed. Raises UsageError for a horizon or prefill out of range."""

    def __init__(self, seed: int, horizon: int, prefill: int = 0) -> None:
        if not 1 <= horizon <= MAX_HORIZON:
            raise UsageError(f"--horizon {horizon} is out of range.", f"Give a number from 1 to {MAX_HORIZON}.")
        if not 0 <= prefill <= MAX_PREFILL:
            raise UsageError(f"--prefill {prefill} is out of range.", f"Give a number from 0 to {MAX_PREFILL}.")
        self.seed = seed
        self._horizon = horizon
        self._stream = warehouse_events(seed, horizon, prefill)
        self._shelves = stocked_shelves(seed, prefill)
        self._places = {item: shelf for shelf, item in self._shelves.items()}
        self._dock: set[str] = set()
        self._step = 0
        self._result = ""
        self._initial = self.projection()
        self._arrive()

    @property
    def domain(self) -> Domain:
        return WAREHOUSE

    @property
    def horizon(self) -> int:
        return self._horizon

    @property
    def initial_state(self) -> Json:
        return self._initial

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(f"{event.kind.value} {event.item}" for event in self._stream)

    @property
    def void(self) -> bool:
        event = self._event
        return event.kind is not Kind.RECEIVE and event.item not in self._places

    def observe(self) -> str:
        return f"{self._result}\n{self._event_line()}" if self._result else self._event_line()

    def projection(self) -> Json:
        return WAREHOUSE.schema.canonical({"inventory": dict(self._shelves)})

    def execute(self, action: str | None) -> Receipt:
        error = "no valid action was given." if action is None else self._refusal(action.split(" "))
        if error:
            receipt = Receipt(False, False, f"Error: {error}")
        else:
            words = str(action).split(" ")
            receipt = Receipt(True, self._satisfies(words), self._carry_out(words))
        self._result = receipt.message
        self._step += 1
        if self._step < self._horizon:
            self._arrive()
        return receipt

    def oracle(self) -> OracleTurn:
        event = self._event
        if self.void:
            return OracleTurn({}, "Wait")
        empty = self._lowest_empty()
        if event.kind is Kind.RECEIVE:
            return OracleTurn({"inventory": {empty: event.item}}, f"Store {event.item} {empty}")
        shelf = self._places[event.item]
        if event.kind is Kind.ORDER:
            return OracleTurn({"inventory": {shelf: None}}, f"Ship {event.item} {shelf}")
        return OracleTurn({"inventory": {shelf: None, empty: event.item}}, f"Move {event.item} {shelf} {empty}")

    @property
    def _event(self) -> WarehouseEvent:
        return self._stream[self._step]

    def _arrive(self) -> None:
        if self._event.kind is Kind.RECEIVE:
            self._dock.add(self._event.item)

    def _event_line(self) -> str:
        event = self._event
        if event.kind is Kind.RECEIVE:
            return f"Shipment arrived containing {event.item}."
        if event.kind is Kind.ORDER:
            return f"Customer ordered {event.item}."
        return f"Maintenance required on {self._places.get(event.item) or self._lowest_empty()}."

    def _lowest_empty(self) -> str:
        """The lowest-numbered empty shelf; of a full warehouse, the first shelf."""
        names = (f"shelf_{number}" for number in range(SHELF_COUNT))
        return next((name for name in names if name not in self._shelves), "shelf_0")

    def _refusal(self, words: list[str]) -> str:
        """Why the world refuses an action; empty when it does not."""
        match words:
            case ["Wait"]:
                return ""
            case ["Store", item, shelf]:
                return self._not_docked(item) or self._not_empty(shelf)
            case ["Ship", item, shelf]:
                return self._not_there(item, shelf)
            case ["Move", item, old, new]:
                return self._not_there(item, old) or self._not_empty(new)
        return f"unknown action {' '.join(words)[:80]!r}."

    def _not_docked(self, item: str) -> str:
        return "" if item in self._dock else f"{item} is not on the dock."

    def _not_empty(self, shelf: str) -> str:
        if not _is_shelf(shelf):
            return f"there is no shelf {shelf!r}."
        return f"{shelf} is not empty." if shelf in self._shelves else ""

    def _not_there(self, item: str, shelf: str) -> str:
        return "" if self._shelves.get(shelf) == item else f"{item} is not on {shelf}."

    def _satisfies(self, words: list[str]) -> bool:
        event = self._event
        verb = {Kind.RECEIVE: "Store", Kind.ORDER: "Ship", Kind.MAINTENANCE: "Move"}[event.kind]
        return words[:2] == [verb, event.item]

    def _carry_out(self, words: list[str]) -> str:
        match words:
            case ["Store", item, shelf]:
                self._dock.discard(item)
                self._put(item, shelf)
                return f"Success: Stored {item} in {shelf}."
            case ["Ship", item, shelf]:
                self._take(item, shelf)
                return f"Success: Shipped {item} from {shelf}."
            case ["Move", item, old, new]:
                self._take(item, old)
                self._put(item, new)
                return f"Success: Moved {item} from {old} to {new}."
        return "Success: Waited."

    def _put(self, item: str, shelf: str) -> None:
        self._shelves[shelf] = item
        self._places[item] = shelf

    def _take(self, item: str, shelf: str) -> None:
        del self._shelves[shelf]
        del self._places[item]


def _is_shelf(name: str) -> bool:
    return name in WAREHOUSE.schema.vocabularies["shelf"]
