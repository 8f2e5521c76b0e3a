#!/usr/bin/env bash
# Everything that needs a GPU, on a machine with one; no network and no nox wanted. Prints a short table at the end.
#
#   tools/gpu_check.sh [STEP ...]      steps: build tests cases conformance xor mnist sanitize (default: all)
#
# `build` installs the packages without isolation and without dependencies, so nanobind, scikit-build-core, cmake, ninja
# and a CUDA compiler must be there already, as must pytest, numpy and the rest of what the packages need.
#   PYTHON       the Python to use (python3)
#   GRAD_VENV    install into this virtual environment (made if it is not there; sees the system's packages)
#   CUDAARCHS    architectures to build for, for example 90; default: those of CMakeLists.txt
#   MNIST_ARGS   further arguments of `gradexamples mnist`, for example "--data-dir DIR"
#   WORKERS      processes of the tests (8), where pytest-xdist is installed
#   LOGS         where the logs go (a temporary folder)
set -u
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(build tests cases conformance xor mnist sanitize)
if [ -n "${GRAD_VENV:-}" ]; then
    [ -x "$GRAD_VENV/bin/python" ] || "$python" -m venv --system-site-packages "$GRAD_VENV" || exit 1
    python=$GRAD_VENV/bin/python
fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
table=()
failed=0
workers=() # pytest-xdist, where it is installed
"$python" -c "import xdist" 2>/dev/null && workers=(-n "${WORKERS:-8}")

# run NAME COMMAND...: one row of the table; the last line that the command printed is its result
run() {
    local name=$1 started=$SECONDS status result
    shift
    echo "== $name: $*"
    if "$@" >"$logs/$name.log" 2>&1; then status=ok; else status="FAILED ($?)"; failed=1; fi
    result=$(grep -v '^[[:space:]]*$' "$logs/$name.log" | tail -n 1 | cut -c 1-110)
    [ "$status" = ok ] || tail -n 40 "$logs/$name.log"
    table+=("$(printf '%-14s %-12s %5d s  %s' "$name" "$status" $((SECONDS - started)) "$result")")
}

# must_find NAME COMMAND...: passes if the sanitizer reports an error
must_find() {
    local name=$1
    shift
    if "$@" >"$logs/$name.log" 2>&1; then failed=1; table+=("$(printf '%-14s FAILED: a planted fault was not found' "$name")")
    else table+=("$(printf '%-14s ok           planted fault found' "$name")"); fi
}

sanitize() {
    local check=(compute-sanitizer --error-exitcode 99 --tool)
    if ! command -v compute-sanitizer >/dev/null; then table+=("sanitize       skipped: no compute-sanitizer on PATH"); return; fi
    GRADCUDA_ALLOCATOR=plain run memcheck "${check[@]}" memcheck "$python" tools/sanitize_kernels.py
    GRADCUDA_ALLOCATOR=plain run memcheck-suite "${check[@]}" memcheck "$python" -m pytest -q --no-header \
        -p no:cacheprovider -p no:xdist -c pyproject.toml --pyargs gradcore.testing.suite --gradcore-backend cuda \
        -k "not large and not 70000 and not million and not mnist and not training"
    for tool in racecheck initcheck synccheck; do
        run $tool "${check[@]}" $tool "$python" tools/sanitize_kernels.py
    done
    GRADCUDA_ALLOCATOR=plain must_find plant-overrun "${check[@]}" memcheck "$python" tools/sanitize_kernels.py --plant overrun
    must_find plant-race "${check[@]}" racecheck "$python" tools/sanitize_kernels.py --plant race
    must_find plant-init "${check[@]}" initcheck "$python" tools/sanitize_kernels.py --plant uninitialized
}

for step in "${steps[@]}"; do
    case $step in
    build)
        packages=(packages/gradcore packages/gradref packages/gradcuda packages/gradexamples)
        run build "$python" -m pip install --quiet --no-build-isolation --no-deps --no-index --force-reinstall "${packages[@]}"
        [ $failed -eq 0 ] || break
        ;;
    tests) run tests "$python" -m pytest -q --no-header -p no:cacheprovider "${workers[@]}" ;;
    cases) # gradcore's own tests, which otherwise run on the backends of the CPU
        GRADCORE_TEST_BACKENDS=cuda run cases "$python" -m pytest -q --no-header -p no:cacheprovider "${workers[@]}" \
            packages/gradcore/tests --ignore packages/gradcore/tests/testing --ignore packages/gradcore/tests/backend
        ;;
    conformance)
        run conformance "$python" -m pytest -q --no-header -p no:cacheprovider "${workers[@]}" -c pyproject.toml \
            --pyargs gradcore.testing.suite --gradcore-backend cuda
        ;;
    xor) run xor "$python" -m gradexamples xor --backend cuda ;;
    # shellcheck disable=SC2086  # several words on purpose
    mnist)
        run mnist "$python" -m gradexamples mnist --backend cuda ${MNIST_ARGS:-}
        run seeds "$python" tools/mnist_seeds.py --backend cuda ${MNIST_ARGS:-}
        ;;
    sanitize) sanitize ;;
    *) echo "gpu_check: no step '$step'" >&2; exit 2 ;;
    esac
done

echo
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "${table[@]}"
echo "logs: $logs"
exit $failed
