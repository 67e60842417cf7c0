#!/usr/bin/env bash
# The steps of action.yml, one a call: install, waves, base, compare, report, comment, gate. What a workflow says comes
# in INPUT_* variables, so that none of it is ever shell text.
set -euo pipefail
# Switches of a job's Python by which a program ends with another exit code than its own.
unset PYTHONINSPECT PYTHONWARNINGS PYTHONHASHSEED PYTHONOPTIMIZE PYTHONHOME

home=$RUNNER_TEMP/inference-benchmarker
benchmark=$home/environment/bin/benchmark
name=${INPUT_NAME:-}
folder=$home/$name
new=$folder/new
base=$folder/base
comparison=$folder/comparison.md
report=$folder/report.md
marker="<!-- inference-benchmarker: $name -->"

die() {
    echo "::error::$*"
    exit 2
}

tell() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }

# A program whose lines are no commands to the runner: an endpoint's error texts may stand in them. code: its exit code.
run() {
    local word
    word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    code=0
    echo "::stop-commands::$word"
    "$@" || code=$?
    echo "::$word::"
}

# flag=LINE for each line of a text, in the array words.
flag_of_each() {
    local line
    words=()
    while read -r line; do
        if [[ -n $line ]]; then words+=("$1=$line"); fi
    done <<<"$2"
}

# The words of INPUT_FLAGS in the array words.
words_of_flags() {
    local word split='import os, shlex; print(*shlex.split(os.environ["INPUT_FLAGS"]), sep="\0", end="\0")'
    words=()
    python3 -I -c "$split" 2>/dev/null >"$folder/flags" || die "flags: a quote is not closed."
    while IFS= read -r -d '' word; do # not readarray: macOS has an old bash
        if [[ -n $word ]]; then words+=("$word"); fi
    done <"$folder/flags"
}

# The worse of two exit codes. Another one than the command's own is the worst: something killed it, and what it measured
# is not known. Nothing instead of a code counts as 3, since the step ended before it knew one.
worse() {
    local each one=${1:-3} other=${2:-3}
    for each in "$one" "$other"; do
        case $each in
            0 | 1 | 2 | 3 | 130) ;;
            *)
                echo "$each"
                return
                ;;
        esac
    done
    for each in 2 130 3 1 0; do
        if [[ $one == "$each" || $other == "$each" ]]; then
            echo "$each"
            return
        fi
    done
}

# code, of a command that leaves the file $1: without it 0 and 1 are no verdict, for the command came to none.
judge_by() {
    if [[ $code == [01] && ! -s $1 ]]; then code=3; fi
}

# With the packages of the job's Python in sight: a factories file may import them. Python is isolated (-I), since it starts
# in the checkout, whose venv.py or pip.py it would run instead.
install() {
    if [[ -x $benchmark ]]; then return; fi
    python3 -I -m venv --system-site-packages "$home/environment"
    "$home/environment/bin/python" -I -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
}

waves() {
    local what=() flags=() worst=0 number
    [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || die "name: letters, digits, dots, hyphens and underscores, not '$name'."
    [[ $INPUT_WAVES =~ ^[1-9][0-9]?$ ]] || die "waves: a whole number from 1 to 99, not '$INPUT_WAVES'."
    [[ ${INPUT_STRICT:-} =~ ^(true|false)?$ ]] || die "strict: true or false, not '$INPUT_STRICT'."
    [[ ${INPUT_COMMENT:-} =~ ^(true|false)?$ ]] || die "comment: true or false, not '$INPUT_COMMENT'."
    case $INPUT_URL,$INPUT_FACTORIES_FILE in
        http://*, | https://*,) what=("$INPUT_URL") ;;
        ,?*) what=("--factories-file=$INPUT_FACTORIES_FILE") ;;
        *) die "Give url, which begins with http:// or https://, or factories-file." ;;
    esac
    rm -rf "$folder"
    mkdir -p "$new"
    words_of_flags
    flags=(${words[@]+"${words[@]}"})
    flag_of_each --slo "$INPUT_SLO"
    flags+=(${words[@]+"${words[@]}"})
    for ((number = 1; number <= INPUT_WAVES; number++)); do
        run "$benchmark" "${what[@]}" ${flags[@]+"${flags[@]}"} --name "$name" --output-dir "$new"
        if [[ $code == 2 ]]; then die "The inputs are not good; see above."; fi
        judge_by "$(find "$new" -mindepth 2 -maxdepth 2 -name summary.json | sed -n "${number}p")"
        worst=$(worse "$worst" "$code")
    done
    tell exit-code "$worst"
    tell runs "$new"
}

# The runs of the last push to the base branch whose workflow succeeded. Pushes are by whoever may write there: a fork may
# have a branch of the same name, but pushes nothing here.
base() {
    local workflow=${GITHUB_WORKFLOW_REF%@*} runs run reason
    local of_base=(--workflow "${workflow##*/}" --branch "$GITHUB_BASE_REF" --event push --status success)
    runs=$(gh run list --repo "$GITHUB_REPOSITORY" "${of_base[@]}" --limit 10 --json databaseId --jq '.[].databaseId') ||
        die "The runs of $GITHUB_BASE_REF cannot be listed; the job needs the permission 'actions: read'."
    for run in $runs; do
        if reason=$(gh run download "$run" --repo "$GITHUB_REPOSITORY" --name "$name" --dir "$base" 2>&1); then
            echo "The base is what run $run of $GITHUB_BASE_REF measured."
            tell url "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$run"
            return
        fi
        rm -rf "$base" # what came before it broke off
        # Only what gh says of a run without one, or with one that is too old, is a reason to look further: a limit of
        # requests or an outage would let a gate pass that compares.
        case $reason in
            *"no artifact matches"* | *"no valid artifacts found"*) ;;
            *) die "The artifact of run $run cannot be downloaded: ${reason%%$'\n'*}" ;;
        esac
    done
    echo "::notice::No push to $GITHUB_BASE_REF has an artifact '$name' yet: there is nothing to compare with."
}

compare() {
    local words=()
    code=0
    cd "$folder" # so that the sides are called base and new, without the runner's folders
    if [[ -d $base ]]; then
        flag_of_each --max-regression "$INPUT_MAX_REGRESSION"
        if [[ $INPUT_STRICT == true ]]; then words+=(--strict); fi
        run "$benchmark" compare base new ${words[@]+"${words[@]}"} --markdown "$comparison"
        if [[ $code == 2 ]]; then die "The runs cannot be compared; see above."; fi
        judge_by "$comparison"
    fi
    tell exit-code "$code"
}

# A wave that kept its limits is folded under its first word. A report that cannot be made is no pass.
report() {
    local run_dir open word number=0 worst=0
    {
        printf '%s\n## Load test: %s\n\n' "$marker" "$name"
        if [[ -f $comparison ]]; then
            cat "$comparison"
            printf '\nThe base is what [this run](%s) measured.\n' "$BASE_URL"
        elif [[ -d $base ]]; then
            echo "The comparison with the base branch failed; the log of the job says why."
        elif [[ -n ${GITHUB_BASE_REF:-} ]]; then
            echo "There is no run of the base branch to compare with yet."
        fi
        for run_dir in "$new"/*/; do
            number=$((number + 1)) code=0 open=' open'
            rm -f "$folder/wave.md"
            "$benchmark" report "$run_dir" --format markdown --output "$folder/wave.md" >&2 || code=$?
            judge_by "$folder/wave.md"
            if [[ $code == 0 ]]; then open=''; fi
            worst=$(worse "$worst" "$code")
            word=$(sed -n '1s/^### \([A-Z][A-Z ]*\)[:,].*/: \1/p' "$folder/wave.md" 2>/dev/null) || word=''
            printf '\n<details%s><summary>Wave %d%s</summary>\n\n' "$open" "$number" "$word"
            cat "$folder/wave.md" 2>/dev/null || echo "The report of this wave failed; the log of the job says why."
            printf '\n</details>\n'
        done
    } >"$report"
    cat "$report" >>"$GITHUB_STEP_SUMMARY"
    tell exit-code "$worst"
    tell report "$report"
}

# One comment for each name, found by the line it begins with.
comment() {
    local comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments ids to
    local ours=".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$marker\"))) | .id"
    if ids=$(gh api --paginate "$comments" --jq "$ours"); then
        if [[ -n $ids ]]; then
            to=(--method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/${ids%%$'\n'*}")
        else
            to=(--method POST "$comments")
        fi
        if gh api "${to[@]}" --field "body=@$report" --silent; then return; fi
    fi
    echo "::warning::The comment cannot be written: the job needs 'pull-requests: write', which a pull request from a fork lacks." \
        "The report is in the summary of the job."
}

gate() {
    local compared=$OF_COMPARISON
    if [[ -z ${GITHUB_BASE_REF:-} ]]; then compared=0; fi # a push is compared with nothing
    code=$(worse "$OF_WAVES" "$OF_REPORT")
    code=$(worse "$code" "$compared")
    case $code in
        0) echo "No limit is missed." ;; # some may be undecided, or none given
        1) echo "::error::A limit is missed (exit code 1); the report is in the summary of the job." ;;
        2 | 3 | 130) echo "::error::What was measured cannot be relied on (exit code $code); the report is in the summary of the job." ;;
        *)
            echo "::error::The benchmark ended with the unknown exit code $code; something may have killed it. See the log of the job."
            if [[ ! $code =~ ^[1-9][0-9]{0,2}$ || $code -gt 255 ]]; then code=3; fi # "0 " and 256 would end as 0
            ;;
    esac
    tell exit-code "$code"
    exit "$code"
}

"$1"
