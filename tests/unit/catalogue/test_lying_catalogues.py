"""A catalogue that lies releases, publishes and deletes nothing; more by `make prove-book`."""

from tests.support.lying_catalogues import trial


def test_ledgers_that_are_not_due_stay_as_they_are_whatever_rows_say(tmp_path):
    found = [trial(seed, tmp_path / str(seed)) for seed in range(25)]
    assert [one.problems for one in found if one.problems] == []
    assert sum(one.asked for one in found) > 10
    assert sum(one.wrong for one in found) > 50


def test_a_trial_notices_a_run_that_believes_rows(tmp_path, monkeypatch):
    """Without the gate's lag a ledger that was published a moment ago goes."""
    monkeypatch.setattr("tiering_assets.release.gate.lag_elapsed", lambda **_how: True)
    assert any(trial(seed, tmp_path / str(seed)).problems for seed in range(10))
