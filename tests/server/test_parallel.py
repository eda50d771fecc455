"""Many clients at once: every answer whole, every answer right, memory flat."""

from __future__ import annotations

import threading
from collections import Counter

from lookalike.server.settings import Settings

CLIENTS, EACH = 50, 12


def test_fifty_clients_get_the_answers_that_one_gets(client):
    asked = [("POST", "/api/v1/search", {"terms": [{"item": number}], "k": 5}) for number in range(1, 9)]
    asked += [("GET", path, None) for path in ("/api/v1/items?limit=5", "/api/v1/map", "/api/v1/columns/label",
                                              "/api/v1/items/3/thumb?size=64")]  # fmt: skip
    alone = [told(client.ask(method, path, body=body)) for method, path, body in asked]
    wrong: list[object] = []
    statuses: Counter[int] = Counter()
    guard = threading.Lock()

    def work(number: int) -> None:
        for turn in range(EACH):
            place = (number + turn) % len(asked)
            method, path, body = asked[place]
            answer = client.ask(method, path, body=body)
            with guard:
                statuses[answer.status] += 1
                if told(answer) != alone[place]:
                    wrong.append((asked[place], answer))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert statuses == {200: CLIENTS * EACH}
    assert not wrong[:1]


def told(answer):
    """Return what an answer says, without how long it took."""
    if answer.headers["content-type"] != "application/json":
        return answer.content
    return {key: value for key, value in answer.json.items() if key != "took_ms"}


def test_beyond_what_may_wait_a_search_is_refused_and_told_to_come_back(shop, serve):
    client = serve(Settings(catalogue=shop, port=0, threads=1, parallel=1, waiting=0))
    answers: list[tuple[int, str | None]] = []

    def work() -> None:
        answer = client.post("labs/recall", {"depth": 60, "seed": threading.get_native_id() % 1_000})
        answers.append((answer.status, answer.headers.get("retry-after")))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {status for status, _ in answers} == {200, 503}
    assert all(after for status, after in answers if status == 503)
    assert client.get("health").status == 200


def test_an_answer_that_takes_too_long_is_given_up(shop, serve):
    client = serve(Settings(catalogue=shop, port=0, threads=1, answer_seconds=0.001))
    answer = client.post("labs/recall", {"depth": 60})
    assert (answer.status, answer.json["status"]) == (504, 504)
