"""What a vector environment counts and tells in every step, of all its environments at once, in compiled code."""

from __future__ import annotations

from gpusched_env.compiling import cached
from gpusched_env.devices.compiled.layout import DECIDE


@cached(nogil=True)
def count_actions(actions, reasons, masks, over, restartable, decisions, illegal, kept):
    """Count the actions of a step before they are carried out, if all of them can be.

    Args:
        actions: int64 ``(n,)``.
        reasons, masks: of the batch.
        over: bool ``(n,)``: whose episode has ended.
        restartable: whether a step of such an environment begins the next episode.
        decisions, illegal: int64 ``(n,)``: actions and illegal actions of the episodes; added to.
        kept: int32 ``(n, room)``: the actions of the episodes, as far as there is room; written.

    Returns:
        the first environment whose action is not one, the first whose episode is over (-1: none), and whether
        everything was counted. That is not so if an action is none, or an episode is over and not restartable.
    """
    wrong = ended = -1
    for e in range(actions.size - 1, -1, -1):
        if actions[e] < 0 or actions[e] >= masks.shape[1]:
            wrong = e
        if over[e]:
            ended = e
    if wrong >= 0 or (ended >= 0 and not restartable):
        return wrong, ended, False
    for e in range(actions.size):
        if reasons[e] == DECIDE:
            if decisions[e] < kept.shape[1]:
                kept[e, decisions[e]] = actions[e]
            decisions[e] += 1
            illegal[e] += not masks[e, actions[e]]
    return wrong, ended, True


@cached(nogil=True)
def count_results(reasons, costs, charged, over, rewards, ended):
    """Count what a step has led to.

    Args:
        reasons, costs: of the batch.
        charged: float64 ``(n,)``: total costs that earlier rewards have told; brought up to date.
        over: bool ``(n,)``: whose episode had ended before the step; then: whose has ended in it.
        rewards: float64 ``(n,)``; written.
        ended: bool ``(n,)``: whose episode has ended in this step; written.

    Returns:
        how many episodes have ended.
    """
    number = 0
    for e in range(reasons.size):
        rewards[e] = charged[e] - costs[e]
        charged[e] = costs[e]
        ended[e] = reasons[e] != DECIDE and not over[e]
        over[e] = ended[e]
        number += ended[e]
    return number


@cached(nogil=True)
def copy_infos(masks, times_us, illegal, rows, out_masks, out_times_us, out_elapsed_us, out_illegal):
    """Copy what infos say of the environments ``rows`` (bool ``(n,)``); zeros for the others.

    Args:
        masks: int8 ``(n, actions)``.
        times_us: float64 ``(n, 2)``, see :class:`~gpusched_env.envs.batch.EnvBatch`.
        illegal: int64 ``(n,)``.
        out_masks: int8 ``(n, actions)``; written.
        out_times_us, out_elapsed_us, out_illegal: float64 and int64 ``(n,)``; written.
    """
    for e in range(rows.size):
        shown = rows[e]
        for action in range(masks.shape[1]):
            out_masks[e, action] = masks[e, action] & shown
        out_times_us[e] = times_us[e, 1] if shown else 0.0
        out_elapsed_us[e] = times_us[e, 1] - times_us[e, 0] if shown else 0.0
        out_illegal[e] = illegal[e] if shown else 0
