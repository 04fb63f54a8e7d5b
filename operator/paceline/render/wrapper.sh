# PID 1 of an arm's container in a round: runs the arm's server at the client's word. POSIX sh.
#
# Below PACELINE_CTL (/ctl) are two directories. The client writes `in`, which all arms only read; this script writes
# `out`, which is its arm's own. A file is written under another name and renamed, so none is ever seen half. ARM is
# $PACELINE_ARM; N counts looks, from 1.
#
#   in, by the client                                 out, by this script
#   heartbeat   changes at least every few seconds    gpus     ids, once: NVIDIA_VISIBLE_DEVICES, or what the
#   done        the round is over                              driver says where that names none
#   ARM/start   a shell script that execs the server  model    what the driver calls the GPUs, once
#   ARM/stop    end the server                        driver   the GPU driver's version, once, where nvidia-smi is
#   ARM/look.N  ask the driver how the GPUs are       memory   MiB used on the fullest GPU; again with every look
#   ARM/end     nothing more is wanted of this arm    kernels  files in PACELINE_KERNELS; again with every look
#                                                     ready    the last of these, before the server
#                                                     pid      of the server, which leads its own session and group
#                                                     clocks.N its answer: the fields' names, then a line a GPU; then,
#                                                              if it can be read, the same of the energy counters
#                                                     log      of the server, whole; it goes to our stdout too
#                                                     alive    its time says that we live
#                                                     exit     status, and "stopped" if it ended at our word; written
#                                                              once all of its session is gone
#
# The client reads what is there before the server, and looks while nothing is measured, only where driver is. A server
# can write into out, too, and so fake its own end; the next arm starts only once this container has ended, and with it
# every process in it.
#
# PACELINE_DEVICES, where it is set, are the only GPUs that the driver is asked about. The first argument is the text of
# energy.py.
#
# We exit 0 after end or done, whatever the server did: the next arm is to run. 70 if the heartbeat stands still for
# PACELINE_HEARTBEAT_SECONDS (30) or does not begin within PACELINE_CLIENT_SECONDS (300); 143 on SIGTERM. A server that
# still runs is ended first, every time.
set -u
in=${PACELINE_CTL:-/ctl}/in out=${PACELINE_OUT:-/ctl/out}
arm=$in/$PACELINE_ARM counters=${1:-}
patience=${PACELINE_CLIENT_SECONDS:-300} # until the first heartbeat; then the other
grace=${PACELINE_GRACE_SECONDS:-5}       # from SIGTERM to SIGKILL
child='' over='' beat='' look=1

tell() { rm -rf "$out/.$1" && printf '%s\n' "$2" >"$out/.$1" && mv -f "$out/.$1" "$out/$1"; }
now() { read -r up _ </proc/uptime && echo "${up%%.*}"; } # of the machine, so that no clock can be set
nap() { # alive without a process, for a server is being measured, and by no name, which a server could give to a pipe
  echo >&3
  sleep 0.2 2>/dev/null || sleep 1
}
smi() {
  timeout 10 nvidia-smi ${PACELINE_DEVICES:+-i "$PACELINE_DEVICES"} --query-gpu="$1" --format=csv,noheader,nounits
} 2>/dev/null
joules() { # the energy counters of the GPUs in nvidia-smi's lines; nothing without python3 or the driver's library
  if [ -n "$counters" ] && [ -n "$1" ]; then printf '%s\n' "$1" | timeout 5 python3 -I -S -c "$counters" "$child"; fi
} 2>/dev/null
gpus() { smi "$1" | sort -n | tail -n 1; }
memory() { # MiB used on the fullest GPU; nothing where that is unknown ("[N/A]", "[Not Supported]")
  mib=$(gpus memory.used)
  case $mib in *[!0-9]*) ;; *) echo "$mib" ;; esac
}

kernels() { # files that engines have compiled; nothing where that is unknown, or cannot be counted quickly
  files=$(timeout 4 find "${PACELINE_KERNELS:-/none}" -type f 2>/dev/null) || return
  tell kernels "$(printf %s "$files" | grep -c '')"
}

wanted=uuid,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu
counted=sw_power_cap,sync_boost,sw_thermal_slowdown,hw_thermal_slowdown,hw_power_brake_slowdown
fields() { # the most that this driver can be asked: counters came late, and the reasons had another name
  every=$wanted,clocks_event_reasons.active,$(echo "$counted" | sed 's/[^,]*/clocks_event_reasons_counters.&/g')
  for one in "$every" "$wanted,clocks_event_reasons.active" "$wanted,clocks_throttle_reasons.active" "$wanted"; do
    found=$(smi "$one") && case $found in *,*) echo "$one" && return ;; esac
  done
}

members() { # processes of the server's session or group that are more than zombies
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    who=${stat#/proc/} who=${who%/stat}
    # shellcheck disable=SC2086 # to be split: state, parent, group, session and more
    set -- ${line##*) }
    case $1 in Z | X) continue ;; esac
    if [ "$who" = "$child" ] || [ "$3" = "$child" ] || [ "$4" = "$child" ]; then echo "$who"; fi
  done
}

begin() {
  rm -rf "$out/pipe" "$out/log"
  mkfifo "$out/pipe"
  tee "$out/log" <"$out/pipe" 3>&- &
  logger=$!
  # setsid execs: we start it in the background, so it leads no group yet. Its pid is the server's.
  if command -v setsid >/dev/null; then
    setsid sh "$arm/start" >"$out/pipe" 2>&1 3>&- &
  else
    sh "$arm/start" >"$out/pipe" 2>&1 3>&- &
  fi
  child=$!
  tell pid "$child"
}

end() { # with signal $1; wait at most $2 seconds for the last of them to go
  deadline=$(($(now) + $2)) left=$(members)
  # shellcheck disable=SC2086 # one word a process; the group too, for what forks just now
  if [ -n "$left" ]; then kill -s "$1" -- "-$child" $left 2>/dev/null; fi
  while [ -n "$(members)" ] && [ "$(now)" -lt "$deadline" ]; do nap; done
}

finish() { # $1: "stopped", or nothing if the server ended by itself
  end TERM "$grace"
  end KILL "$grace"
  if kill -0 "$child" 2>/dev/null && [ -n "$(members)" ]; then status=137; else wait "$child" && status=0 || status=$?; fi
  nap # for the last lines: whoever left the session may hold the pipe open for ever
  kill "$logger" 2>/dev/null
  wait "$logger" 2>/dev/null
  child='' ended=1
  tell exit "$status${1:+ $1}"
}

trap 'over=143' TERM INT
exec 3>"$out/alive"
ids=${NVIDIA_VISIBLE_DEVICES:-}
case $ids in '' | all | void | none) # a device plugin that hands them out in another way (CDI)
  ids=$(smi uuid | tr '\n' ',') ids=${ids%,} ;;
esac
tell gpus "$ids"
driver='' asked='' ended=''
if command -v nvidia-smi >/dev/null; then driver=$(gpus driver_version); fi
if [ -n "$driver" ]; then
  asked=$(fields)
  tell model "$(gpus name)"
  tell driver "$driver"
  tell memory "$(memory)"
fi
kernels
tell ready 1
since=$(now)
while [ -z "$over" ]; do
  if [ -e "$arm/look.$look" ]; then
    tell memory "$(memory)"
    kernels
    rows=$(smi "$asked") energy=$(joules "$rows")
    tell "clocks.$look" "$asked
$rows${energy:+

$energy}"
    look=$((look + 1))
  fi
  if [ -e "$in/done" ] || [ -e "$arm/end" ]; then
    over=0
  elif [ -n "$child" ] && ! kill -0 "$child" 2>/dev/null; then
    finish
  elif [ -n "$child" ] && [ -e "$arm/stop" ]; then
    finish stopped
  elif [ -z "$child$ended" ] && [ -e "$arm/start" ]; then
    begin
  fi
  seen=$(cat "$in/heartbeat" 2>/dev/null)
  if [ "$seen" != "$beat" ]; then
    beat=$seen since=$(now) patience=${PACELINE_HEARTBEAT_SECONDS:-30}
  elif [ $(($(now) - since)) -ge "$patience" ]; then
    echo "paceline: no sign of the client for $patience s" >&2
    over=${over:-70}
  fi
  if [ -z "$over" ]; then nap; fi
done
if [ -n "$child" ]; then finish stopped; fi
if [ $$ = 1 ]; then rm -rf "$out"/* /dev/shm/*; fi # the volumes outlive this container; nothing else does
exit "$over"
