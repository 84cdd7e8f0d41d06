"""What to know before figures of a problem are read: estimates, slowed hosts, requests and objectives out of reach."""

from __future__ import annotations

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.workload.carry_over import HOW_FAR_OFF


def cautions(problem: Problem) -> list[str]:
    """A sentence each; they hold for any scheduler."""
    profiled = {p.workload.name: None for p in problem.programs if p.workload.profiled and _has_recorded_host(p)}
    said = [about(program) for about in (_too_long, _out_of_reach) for program in problem.programs]
    return [
        *(f"{carried}." for carried in problem.carried_over),
        *([HOW_FAR_OFF] if problem.carried_over else []),
        *(
            f"{workload} has host times of a run under the profiler, which slows the host: import it with "
            "--iteration-us, or give its tenant an iteration_us."
            for workload in profiled
        ),
        *filter(None, said),
    ]


def _has_recorded_host(program: TenantProgram) -> bool:
    """Graphs have no host times between kernels, ``iteration_us`` and ``host_us`` replace the recorded ones."""
    tenant = program.tenant
    return tenant.launch == "eager" and tenant.iteration_us is None and tenant.host_us is None


def _too_long(program: TenantProgram) -> str:
    """Said of a serving engine that rejects some requests whatever happens."""
    engine = program.engine
    if engine is None or engine.fitting.count == engine.fitting.asked:
        return ""
    asked, beyond = engine.asked, engine.fitting.asked - engine.fitting.count
    of = f"{beyond} of {engine.fitting.asked} requests"
    if not asked.belong_together:
        pairs = f"{len(asked.prompts)} prompts, each with any of {len(asked.answers)} answers"
        of = f"{beyond / engine.fitting.asked:.1%} of its requests ({pairs})"
    return (
        f"{program.tenant.name}: {of} are longer than the {engine.longest_request} tokens that its cache and "
        f"the steps of {program.workload.name} hold of one: it rejects them when they arrive."
    )


def _out_of_reach(program: TenantProgram) -> str:
    """Said if the mean job is too long: some may still be in time."""
    slo_us, alone_us = program.tenant.slo_us, program.answer_us
    if slo_us is None or alone_us <= slo_us:
        return ""
    return (
        f"{program.tenant.name} ({program.workload.name}) needs {alone_us / 1e3:.3g} ms on average for "
        f"{_what(program)} alone on the GPU, its SLO is {slo_us / 1e3:.3g} ms: no scheduler can keep it."
    )


def _what(program: TenantProgram) -> str:
    return "a job" if program.engine is None else "the first token of a request"
