"""fit_consensus of a SimilaritySet: runs are joint fits, and weights follow their dimensions."""

import numpy as np
import pytest

from simdims import SRF, JointSRF, ParameterError, SimilaritySet, fit_consensus, plots, simulate, weight_test


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(24, 3, alpha=0.3, random_state=0)
    a = rng.uniform(0.2, 2.0, size=(8, 3))
    stack = [simulate.add_noise((W * a_m) @ W.T, 0.7, random_state=m) for m, a_m in enumerate(a)]
    stack = np.stack([simulate.mask_pairs(S, 0.5, random_state=m, keep_diagonal=False) for m, S in enumerate(stack)])
    return SimilaritySet(stack, names=list("abcdefgh"), info={"group": list("xyxyxyxy")})


@pytest.fixture(scope="module")
def consensus(people):
    return fit_consensus(people, 3, n_runs=4, n_splits=10, alpha="auto", random_state=0, progress=False)


def test_each_run_is_a_joint_fit_from_its_seed_with_aligned_dimensions_and_weights(people, consensus):
    assert consensus.weights.shape == (4, 8, 3)
    assert consensus.systems == people.names
    for number, seed in enumerate(consensus.seeds):
        settings = {"alpha": consensus.alpha, "shrinkage": consensus.shrinkage, "max_iter": 2000}
        alone = JointSRF(3, random_state=seed, **settings).fit(people)
        assert consensus.objectives[number] == pytest.approx(alone.objective_, rel=1e-10)
        distance = np.abs(consensus.embeddings[number][:, :, None] - alone.embedding_[:, None, :]).max(axis=0)
        order = distance.argmin(axis=1)
        np.testing.assert_allclose(consensus.embeddings[number], alone.embedding_[:, order], atol=1e-8)
        np.testing.assert_allclose(consensus.weights[number], alone.weights_[:, order], atol=1e-8)


def test_the_central_run_has_frames_tests_and_pictures(consensus):
    frame = consensus.weights_frame()
    np.testing.assert_array_equal(frame, consensus.weights[consensus.selected])
    np.testing.assert_allclose(frame.mean(), 1.0)
    assert weight_test(consensus, "group").hypotheses == ("dimension1", "dimension2", "dimension3")
    assert len(plots.system_weights(consensus).images) == 1
    assert "8 systems" in consensus.summary()
    assert consensus.mean_reliability > 0.9


def test_workers_change_nothing(people, consensus):
    settings = {"n_runs": 4, "n_splits": 10, "alpha": "auto", "random_state": 0, "progress": False}
    np.testing.assert_array_equal(fit_consensus(people, 3, n_jobs=2, **settings).weights, consensus.weights)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": SRF()}, "estimator must be a JointSRF for a SimilaritySet"),
        ({"estimator": JointSRF(), "alpha": 0.1}, "alpha cannot be given beside an estimator="),
        ({"estimator": JointSRF(init=np.ones((24, 3)))}, "estimator must have init='random'"),
        ({"n_components": 25}, "n_components must be between 1 and n_items = 24"),
        ({"n_runs": 1}, "n_runs must be at least 2"),
    ],
)
def test_bad_input_is_refused(people, settings, words):
    with pytest.raises((ParameterError, TypeError), match=words):
        fit_consensus(people, **{"n_components": 3, **settings})


def test_one_matrix_has_no_weights():
    W = simulate.dirichlet(20, 2, random_state=0)
    alone = fit_consensus(W @ W.T, 2, n_runs=2, n_splits=2, random_state=0, progress=False)
    assert alone.weights is None
    with pytest.raises(ValueError, match="SimilaritySet"):
        alone.weights_frame()
