"""Tasks and their seeds: the same from the same number, and different between tasks."""

import numpy as np
import pytest
from helpers import refused

from simdims._parallel import check_n_jobs, generator_of, root_seed, run_tasks, seed_of, settle_seed


def test_a_seed_follows_from_the_number_or_from_the_state_of_a_generator():
    assert root_seed(3) == root_seed(3) == root_seed(np.random.RandomState(3))
    assert root_seed(np.random.default_rng(3)) == root_seed(np.random.default_rng(3))
    state = np.random.RandomState(3)
    assert root_seed(state) != root_seed(state)
    assert len({root_seed(None) for _ in range(20)}) == 20


@pytest.mark.parametrize("given", [-1, "a", 1.5, [1], 2**32])
def test_what_is_no_seed_is_refused(given):
    for settle in (root_seed, settle_seed):
        with refused("random_state", repr(given)):
            settle(given)


def test_a_settled_seed_is_the_integer_given_or_one_that_is_drawn():
    assert [settle_seed(given) for given in (0, 5, np.int64(7), 2**32 - 1)] == [0, 5, 7, 2**32 - 1]
    assert settle_seed(np.random.RandomState(3)) == settle_seed(np.random.RandomState(3))
    for drawn in (settle_seed(None), settle_seed(np.random.RandomState(3)), settle_seed(np.random.default_rng(3))):
        assert settle_seed(drawn) == drawn
    assert len({settle_seed(None) for _ in range(20)}) == 20


def test_tasks_have_seeds_of_their_own():
    assert len({seed_of(0, *task) for task in [(0,), (1,), (0, 0), (0, 1), (1, 0)]}) == 5
    assert seed_of(0, 1) != seed_of(1, 1)


@pytest.mark.parametrize("given", [0, 10**30, -(10**30), 1.5, True, "2"])
def test_what_is_no_number_of_workers_is_refused(given):
    with refused("n_jobs", repr(given)):
        check_n_jobs(given)


def test_an_error_of_a_task_is_raised_as_it_is():
    with pytest.raises(ZeroDivisionError):
        list(run_tasks(divmod, (1,), [1, 0], n_jobs=1))


def test_every_task_is_done_once():
    assert sorted(run_tasks(divmod, (7,), [1, 2, 3], n_jobs=1)) == [(2, 1), (3, 1), (7, 0)]


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, np.int64(3)])
def test_a_seed_gives_the_generator_of_numpy(seed):
    for found, expected in zip(generator_of(seed).get_state(), np.random.RandomState(seed).get_state(), strict=True):
        np.testing.assert_array_equal(found, expected)
