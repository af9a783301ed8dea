"""Study planning: how many pairs, answers and people are needed to recover the dimensions."""

from simdims.planning.result import StudyPlan
from simdims.planning.study import plan_study

__all__ = ["StudyPlan", "plan_study"]
