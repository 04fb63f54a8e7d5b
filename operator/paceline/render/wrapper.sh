# PID 1 of a round's server container: runs one arm's server after another, at the client's word. POSIX sh.
#
# The two containers share the directory PACELINE_CTL (/ctl). A file is written under another name and renamed, so none
# is ever seen half.
#
#   by the client                                     by this script
#   heartbeat  changes at least every few seconds     gpus    ids, once: NVIDIA_VISIBLE_DEVICES, or what the
#                                                             driver says where that names none
#   start      a shell script that execs one server   driver  the GPU driver's version, once, where nvidia-smi is
#   stop       end that server                        pid     of the server, which leads its own session and group
#                                                     model   what the driver calls the GPUs, likewise
#   look       ask the driver how the GPUs are        clocks  its answer: the fields' names, then a line a GPU
#   done       nothing more is wanted                 log     of the server, whole; it goes to our stdout too
#                                                     alive   written anew all the time; its time says that we live
#                                                     exit    its status, and "stopped" if it ended at our word; written
#                                                             once all it started is gone and the GPUs' memory is free
#
# The client removes exit and stop before it writes start, and clocks before look. It looks while nothing is measured,
# and only where driver is.
#
# We exit 0 after done; 70 if the heartbeat stands still for PACELINE_HEARTBEAT_SECONDS (30) or does not begin within
# PACELINE_CLIENT_SECONDS (300); 143 on SIGTERM. A server that still runs is ended first, every time.
set -u
ctl=${PACELINE_CTL:-/ctl}
patience=${PACELINE_CLIENT_SECONDS:-300} # until the first heartbeat; then the other
grace=${PACELINE_GRACE_SECONDS:-5}       # from SIGTERM to SIGKILL
unload=${PACELINE_GPU_SECONDS:-120}      # at most, for the driver to free what a killed server held
child='' over='' beat=''

tell() { printf '%s\n' "$2" >"$ctl/.$1" && mv -f "$ctl/.$1" "$ctl/$1"; }
now() { read -r up _ </proc/uptime && echo "${up%%.*}"; } # of the machine, so that no clock can be set
nap() { # alive is written in place and without a process: only its time is read, and a server is being measured
  echo >"$ctl/alive"
  sleep 0.2 2>/dev/null || sleep 1
}
gpus() { timeout 10 nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null | sort -n | tail -n 1; }
memory() { # MiB used on the fullest GPU; nothing where that is unknown ("[N/A]", "[Not Supported]")
  mib=$(gpus memory.used)
  case $mib in *[!0-9]*) ;; *) echo "$mib" ;; esac
}

wanted=uuid,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu
counted=sw_power_cap,sync_boost,sw_thermal_slowdown,hw_thermal_slowdown,hw_power_brake_slowdown
fields() { # the most that this driver can be asked: counters came late, and the reasons had another name
  every=$wanted,clocks_event_reasons.active,$(echo "$counted" | sed 's/[^,]*/clocks_event_reasons_counters.&/g')
  for one in "$every" "$wanted,clocks_event_reasons.active" "$wanted,clocks_throttle_reasons.active" "$wanted"; do
    found=$(clocks "$one") && case $found in *,*) echo "$one" && return ;; esac
  done
}
clocks() { timeout 10 nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null; }

members() { # processes of the server's session that are more than zombies
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
  mv -f "$ctl/start" "$ctl/command"
  rm -f "$ctl/pipe" "$ctl/log"
  mkfifo "$ctl/pipe"
  tee "$ctl/log" <"$ctl/pipe" &
  logger=$!
  # setsid execs: we start it in the background, so it leads no group yet. Its pid is the server's.
  if command -v setsid >/dev/null; then
    setsid sh "$ctl/command" >"$ctl/pipe" 2>&1 &
  else
    sh "$ctl/command" >"$ctl/pipe" 2>&1 &
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
  deadline=$(($(now) + unload))
  while [ -n "$used" ] && [ -z "$over" ] && [ "$(now)" -lt "$deadline" ]; do
    left=$(memory)
    if [ -n "$left" ] && [ "$left" -le $((used + 1024)) ]; then break; fi
    nap
  done
  child=''
  rm -f "$ctl/stop" "$ctl/pid"
  tell exit "$status${1:+ $1}"
}

trap 'over=143' TERM INT
ids=${NVIDIA_VISIBLE_DEVICES:-}
case $ids in '' | all | void | none) # a device plugin that hands them out in another way (CDI)
  ids=$(timeout 10 nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null | tr '\n' ',') ids=${ids%,} ;;
esac
tell gpus "$ids"
driver='' used='' asked=''
if command -v nvidia-smi >/dev/null; then driver=$(gpus driver_version) used=$(memory); fi
if [ -n "$driver" ]; then
  asked=$(fields)
  tell model "$(gpus name)"
  tell driver "$driver" # the last of these: it says that we can be asked
fi
since=$(now)
while [ -z "$over" ]; do
  if [ -e "$ctl/look" ]; then
    rm -f "$ctl/look"
    tell clocks "$asked
$(clocks "$asked")"
  fi
  if [ -e "$ctl/done" ]; then
    over=0
  elif [ -n "$child" ] && ! kill -0 "$child" 2>/dev/null; then
    finish
  elif [ -n "$child" ] && [ -e "$ctl/stop" ]; then
    finish stopped
  elif [ -z "$child" ] && [ -e "$ctl/start" ]; then
    begin
  fi
  seen=$(cat "$ctl/heartbeat" 2>/dev/null)
  if [ "$seen" != "$beat" ]; then
    beat=$seen since=$(now) patience=${PACELINE_HEARTBEAT_SECONDS:-30}
  elif [ $(($(now) - since)) -ge "$patience" ]; then
    echo "paceline: no sign of the client for $patience s" >&2
    over=${over:-70}
  fi
  nap
done
if [ -n "$child" ]; then finish stopped; fi
exit "$over"
