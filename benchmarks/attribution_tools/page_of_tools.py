"""The page: what is compared, what each tool computes, times and errors."""

from __future__ import annotations

import numpy as np
from pages import digits, paragraph, power, table

from .answers import Answer
from .problem import N_ROWS, Problem
from .times import Times, prediction_times
from .tool import IG, SAMPLED, Tool
from .torch_gp import disagreement
from .truths import N_NODES, in_30_digits
from .with_gp_shap import gp_shap, gp_shap_by_definition

ROW_BY_ROW = ("shap", "GP-SHAP")  # tools that take one row at a time, shapiq among them


def set_up(problem: Problem, truths: dict[str, np.ndarray]) -> list[str]:
    X, gp = problem.X, problem.gp
    reference = in_30_digits(gp, X[0], problem.b)
    check = np.abs(truths[IG][0] - reference).max() / np.abs(reference).max()
    model = paragraph(f"""
        **One model, one question.** scikit-learn's diabetes data without s2 and s4, which
        mostly follow from s1 and s3: {problem.d} features, {len(gp.Z)} patients to train on,
        {len(X)} others to explain. gpattr trained the GP (squared exponential, one length-scale
        per feature, constant mean). Its hyperparameters were copied to scikit-learn's
        `GaussianProcessRegressor` (for SHAP and shapiq), to GPyTorch in double precision (for
        Captum) and to plain NumPy (for the reference values); the predictions of all four agree
        to {disagreement(problem):.0e} in the units of the target. Rows are explained against one
        baseline b, the mean of the training inputs: the start of the path of integrated
        gradients, and the only background point of Shapley values.""")
    truth = paragraph(f"""
        **Two quantities.** gpattr and Captum compute integrated gradients; SHAP, shapiq and
        GP-SHAP compute Shapley values. Both sum to F(x) − F(b), the change of the prediction
        from b to x. They agree for additive functions, but not in general: for x₁x₂² at (1, 1)
        with the baseline (0, 0), integrated gradients are ⅓ and ⅔, Shapley values ½ and ½.
        Neither is an error of the other, so every tool is compared with the exact values of its
        own quantity. For integrated gradients this is Gauss–Legendre quadrature with {N_NODES}
        nodes of the gradient written out in NumPy (for the first row it agrees with 30-digit
        quadrature by mpmath to {check:.0e} of the largest attribution); for Shapley values,
        enumeration of all 2^{problem.d} = {2**problem.d} coalitions.""")
    return [model, truth]


def questions(problem: Problem, tools: list[Tool], answers: list[Answer]) -> list[str]:
    rows = [
        [tool.name, tool.computes, tool.points or f"{answer.evaluations:.0f}", tool.uncertainty]
        for tool, answer in zip(tools, answers, strict=True)
        if not tool.one_row_a_call
    ]
    notes = paragraph(f"""
        The points are counted, and averaged over rows; Captum takes a gradient at each as well.
        GP-SHAP (S. L. Chau, K. Muandet, D. Sejdinovic, *Explaining the Uncertain: Stochastic
        Shapley Values for Gaussian Process Models*, NeurIPS 2023) has no package on PyPI. Both
        lines are **our implementation of the definition, not the authors' code**, and the worth
        of a coalition is f with the missing features set to the baseline, as for the other
        tools here; the paper uses conditional expectations. Shapley values are a linear map of
        the {2**problem.d} worths, whose joint distribution under the posterior is normal, so
        their mean and covariance are exact; “shortened” applies the map before the linear
        solve. shapiq's ProductKernelExplainer is designed for models like this one, but has no
        baseline: for a missing feature, the factor of the kernel is set to 1. This is a
        different game; its values are compared with the exact values of that game, and are not
        comparable with the others.""")
    head = [
        "tool",
        "computes",
        "points per row at which the model is evaluated",
        "uncertainty of the attributions",
    ]
    return ["### What each tool computes", table(head, rows, right=False), notes]


def speed(problem: Problem, tools: list[Tool], times: list[Times], rounds: int) -> list[str]:
    one_row = {
        tool.uncertainty.startswith("exact"): t.seconds
        for tool, t in zip(tools, times, strict=True)
        if tool.one_row_a_call
    }
    rows = [
        [
            tool.name,
            digits(1e3 * t.seconds),
            digits(t.to_means),
            digits(t.to_covariance) if tool.uncertainty.startswith("exact") else "",
            (
                digits(t.seconds / one_row[tool.uncertainty.startswith("exact")])
                if tool.name.startswith(ROW_BY_ROW)
                else ""
            ),
        ]
        for tool, t in zip(tools, times, strict=True)
    ]
    theirs, bare = prediction_times(problem)
    notes = paragraph(f"""
        Medians of {rounds} rounds over the same {N_ROWS} rows, all on one thread. In every
        round gpattr is timed immediately before each tool, and the ratio is the median of these
        pairs; the ratio to means and covariance is given if the tool computes a covariance.
        Explainers are built beforehand, and a warm-up call is not timed. gpattr and Captum
        explain all rows in one call and share its overhead; SHAP, shapiq and GP-SHAP process
        rows one by one, so gpattr is also listed with one row per call, and the last column
        compares them with that, including its covariance if they have one. SHAP and shapiq
        predict with scikit-learn's model, which takes {1e3 * theirs:.2f} ms for all
        {2**problem.d} coalitions of a row (bare NumPy: {1e3 * bare:.2f} ms); the rest is
        overhead. GPyTorch skips variances, which Captum does not need, and the 500 steps are
        evaluated in batches of 1000 points, which is faster here than all at once. The times of
        enumeration (shap Exact, shapiq at full budget, GP-SHAP, and shap Kernel up to 11
        features) at least double with every additional feature.""")
    return [
        "### Time per explained row",
        table(
            [
                "tool",
                "ms",
                "× gpattr's means",
                "× gpattr's means and covariance",
                "× gpattr, one row per call",
            ],
            rows,
        ),
        notes,
    ]


def errors(
    problem: Problem, tools: list[Tool], answers: list[Answer], truths: dict[str, np.ndarray]
) -> list[str]:
    rows = [
        [
            tool.name,
            power(a.error),
            power(a.between_seeds) if tool.random else "not random",
            power(a.gap),
        ]
        for tool, a in zip(tools, answers, strict=True)
        if not tool.one_row_a_call
    ]
    largest = ", ".join(f"{np.abs(truth).max():.1f} for {name}" for name, truth in truths.items())
    apart, ours, theirs = covariance_errors(problem)
    notes = paragraph(
        f"""
        Largest over all rows and features, relative to the largest attribution ({largest}), and
        the worse of two seeds; values below 1e-13 are rounding. The completeness gap is that of
        Σ attributions = F(x) − F(b); for ProductKernelExplainer, of F(x) minus its worth of the
        empty coalition. Captum rounds the weights of its quadrature to single precision,
        whatever the precision of the model; this causes its error, which more steps do not
        reduce. shap's KernelExplainer uses up to {2 * problem.d + 2048} evaluations by default,
        enough for all coalitions of up to 11 features: here it enumerates them, and is not
        random. Its error comes from selecting features (`l1_reg="num_features(10)"`, by
        least-angle regression), which sets the smallest attributions to zero. shapiq's
        KernelSHAP weights the empty and the full coalition with 10⁸ in place of a constraint,
        hence its error at full budget. With {SAMPLED} evaluations both sample, as shap does by
        default for 12 features or more."""
    )
    more = paragraph(
        f"""
        Covariances: the two implementations of GP-SHAP differ by {apart:.0e} of the largest
        entry. The sum of all entries must be the variance of f(x) − f(b), and agrees with it to
        {ours:.0e} for gpattr and to {theirs:.0e} for GP-SHAP."""
    )
    return [
        "### Errors",
        table(["tool", "error", "difference between two seeds", "completeness gap"], rows),
        notes,
        more,
    ]


def covariance_errors(problem: Problem) -> tuple[float, float, float]:
    """Between the two GP-SHAPs, and of completeness, gpattr's and GP-SHAP's; relative."""
    X, b, gp = problem.X, problem.b, problem.gp
    short = np.array([gp_shap(gp, x, b)[1] for x in X])
    full = np.array([gp_shap_by_definition(problem.posterior, x, b)[1] for x in X])
    pairs = np.array([gp.covariance(np.array([x, b])) for x in X])
    variance = pairs[:, 0, 0] + pairs[:, 1, 1] - 2 * pairs[:, 0, 1]
    gaps = [
        float(np.abs(cov.sum(axis=(1, 2)) / variance - 1).max())
        for cov in (problem.explanation.cov, full)
    ]
    return float(np.abs(short - full).max() / np.abs(full).max()), gaps[0], gaps[1]
