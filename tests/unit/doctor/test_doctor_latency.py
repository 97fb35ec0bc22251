"""Doctor says which bookies tell how long their adds take, and what that does to reads."""

import pytest

from tiering_assets.doctor import cluster
from tiering_assets.resources.bookkeeper.add_latency import AddLatency
from tiering_assets.resources.errors import BookieError
from tiering_assets.resources.settings import BudgetSettings, Settings

SETTINGS = Settings(budget=BudgetSettings(add_latency_max_s=0.05))


@pytest.mark.parametrize(
    ("p99_s", "said"),
    [
        (0.05, "p99 50.0 ms, budget.add_latency_max_s 50 ms: reads are not slowed"),
        (0.0613, "p99 61.3 ms, budget.add_latency_max_s 50 ms: reads from it are slowed"),
        (None, "none in the last minute"),
    ],
)
def test_what_it_tells_and_what_follows(monkeypatch, p99_s, said):
    seen = AddLatency(p99_s=p99_s, count=1, total_s=0.0)
    monkeypatch.setattr(cluster, "read_add_latency", lambda _page, **_: seen)
    found = cluster._add_latency("bk1", ("h", 1), SETTINGS)
    assert found.level == "ok"
    assert said in found.text


def test_an_unknown_figure_is_a_warning_with_a_next_step(monkeypatch):
    def silent(_page, **_):
        raise BookieError("figures of the bookie at http://h:1/metrics: HTTP 404")

    monkeypatch.setattr(cluster, "read_add_latency", silent)
    found = cluster._add_latency("bk1", ("h", 1), SETTINGS)
    assert found.level == "warn"
    assert "http://h:1/metrics: HTTP 404" in found.text
    assert "paced by budgets alone" in found.text
    assert "statsProviderClass" in found.next_step
    missing = cluster._add_latency("bk1", None, SETTINGS)
    assert missing.level == "warn"
    assert "bookies.http_port" in missing.next_step
