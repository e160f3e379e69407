-module(witness_replay).
-moduledoc """
Replays a recording: runs the same execution again, in a VM of its own, and reports where it diverges.

```erlang
1> witness_replay:replay(#{dir => "shop.rec"}).
{ok,#{outcome => identical,processes => 12,entries => 3107,...}}
```

Processes take the messages that they took in the recording, in the same order. Their calls return what they returned then. The
program does not act on anything outside again.

This module is the interface. *Invariant:* every check that can refuse a replay comes before the program runs. The checks are of
the options, of the seal (`m:witness_record_seal`, `m:witness_replay_trust`), of the recording, and of its code
(`m:witness_replay_code`). Then `m:witness_replay_vm` starts the VM of the replay and returns its report.

Guide: `docs/replay.md`; how it works: `docs/internals/replay.md`.

## Errors

If a recording cannot be replayed, the result is `{error, {Module, Reason}}` before the program runs, and `Module:format_error/1`
makes text of the reason. The module is this one, `m:witness_log_recording` for a recording that cannot be read, or
`m:witness_record` for code that cannot be prepared. If the VM of the replay fails, the error is `{witness_replay, {vm, Reason}}`. A
divergence is not an error: it is part of the report.
""".

-export([replay/1, fold/3, fold_reports/3, calls/2, start_stopped/2, check_trust/1, format_error/1]).

-export_type([options/0, report/0, divergence/0, reason/0, error/0]).

-doc """
- `dir`: the folder of the recording; required;
- `pa`: folders of compiled modules, which replace those of the recording;
- `trust`: replay even if this account has not recorded it on this machine, or the recording was changed since. The replay runs
  the code that the recording names (false);
- `allow_changed`: replay even if modules differ from the recorded ones (false);
- `mirror`: called with what the program prints, which is dropped otherwise;
- `cache`: the folder that keeps woven modules;
- `vm_args`: further arguments of the VM;
- `whole`: events are reported with every detail, for `m:witness_step` (false);
- `functions`: the functions of which calls, returns or both are events (none);
- `signatures`: rows for signatures (`m:witness_event_wrapper`), in addition to those of the recording (none);
- `syntax`: the notation of texts: that of the module that a process runs (`auto`), or always that of `erlang` or `elixir`;
- `on_progress`: called with the progress, as text.
""".
-type options() :: #{dir := file:filename(), pa => [file:filename()], trust => boolean(),
                     allow_changed => boolean(), whole => boolean(), functions => witness_trace_filter:functions(),
                     signatures => [witness_event_wrapper:row()],
                     syntax => auto | witness_event:syntax(),
                     mirror => fun((unicode:chardata()) -> term()), cache => file:filename(), vm_args => [string()],
                     on_progress => fun((unicode:chardata()) -> term())}.

-doc """
Where a process did something that its log does not say.

- `process`: its pid in the recording, `signature`: the function that it was spawned with, `text`: both for people, `id`: its
  identifier in the recording;
- `position`: the entry of its log that it was at, from 1;
- `log`, `program`: what the log says, and what the program did, as text;
- `stack`: where the program was; `recent`: the last entries before, the latest at the end.
""".
-type divergence() :: #{process := binary(), signature := binary(), text := binary(), id := pos_integer(),
                        position := pos_integer(), log := binary(), program := binary(), stack := [binary()], recent := [binary()]}.

-doc """
- `outcome`: `identical` or `diverged`. If `diverged`, there is a `divergence`, or `waiting` has processes that wait forever;
- `processes`, `entries`: how many were replayed;
- `complete`: the recording has all that was done; otherwise processes stopped where it ends;
- `cut`: how many stopped there; `stopped`: how many were alive when the recording ended as planned; `killed`: how many a signal
  ended;
- `changed`: modules that differ from those of the recording;
- `kept`: the code was that which is kept with the recording, as these modules have changed in their folders, or `all`;
- `ended_at`: of `fold/3`, if the recording has times and is complete: its end, in nanoseconds since it was opened;
- `messages`: what was compared of each message that was taken: its `contents`, a `hash` of it, or `none`.
""".
-type report() :: #{outcome := identical | diverged, processes := non_neg_integer(), entries := non_neg_integer(),
                    complete := boolean(), cut := non_neg_integer(), stopped := non_neg_integer(), killed := non_neg_integer(),
                    changed := [module()], kept => [module()] | all, ended_at => non_neg_integer(),
                    messages := contents | hash | none,
                    divergence => divergence(), waiting => [divergence()]}.

-doc "Why a recording cannot be replayed.".
-type reason() :: {untrusted, witness_record_seal:error(), witness_replay_trust:named()}
                | {header, unicode:chardata()}
                | {release, Recorded :: binary(), Own :: binary()} | witness_log_recording_refusal:reason() | no_processes
                | {two | no_pid, binary()} | {number, pos_integer()} | {folder, file:filename()} | {calls, [mfa()]}
                | {changed, [module()]} | {kept, file:filename_all(), unicode:chardata()} | {file, term()}
                | {traced, witness_replay_traced:reason()} | {vm, term()}.

-type error() :: {?MODULE, reason()} | witness_option:error() | witness_event_wrapper:error() | witness_log_recording:error()
               | witness_record:error().

-doc "Replays a recording to its end, or to the first divergence.".
-spec replay(options()) -> {ok, report()} | {error, error()}.
replay(Options) ->
    maybe
        {ok, Recording, Code, Atoms} ?= prepare(Options),
        {Outcome, What, none} ?= witness_replay_vm:fold(none, none, Recording, Code, Atoms, Options),
        {Outcome, What}
    end.

-doc """
The same, and folds over the events meanwhile, with the place of each (`m:witness_log_recording_events`). The replay reproduces
data that the recording does not contain. If the replay diverges, the events before that are folded too.
""".
-spec fold(fun((witness_event:item(), witness_log_recording_events:place(), Acc) -> Acc), Acc, options()) ->
    {ok, report(), Acc} | {error, error(), Acc}.
fold(Fun, Acc, Options) ->
    maybe
        {ok, Recording, Code, Atoms} ?= prepare(Options),
        {ok, Processes} ?= witness_log_recording:processes(Recording),
        {ok, Waiting} ?= waiting(Recording),
        Births = #{Id => Time || #{id := Id, time := Time} <- Processes},
        Told = fun(Told, {Events, Times, A}) ->
            {Time, Times1} = time(Told, Births, Times),
            {Items, Events1} = witness_replay_events:handle_report(Told, Events),
            {Events1, Times1, fold_items([put_time(Time, Told, Item) || Item <- Items], Fun, A)}
        end,
        {ok, Report, {Events, _, Acc1}} ?= witness_log_recording_times:with_times(fun(Times) ->
            First = {witness_replay_events:new(Processes, Waiting), Times, Acc},
            witness_replay_vm:fold(Told, First, Recording, Code, Atoms, Options)
        end, Recording),
        Cut = case Report of
            #{outcome := identical} -> witness_replay_events:finish(Events);
            #{outcome := diverged} -> []
        end,
        {ok, end_time(Report, Recording), fold_items(Cut, Fun, Acc1)}
    else
        {error, Reason} -> {error, Reason, Acc};
        {error, Reason, {_, _, Reached}} -> {error, Reason, Reached}
    end.

%% Only what has an entry of its own has a time.
time({Id, _, {born, _}}, Births, Times) -> {maps:get(Id, Births, undefined), Times};
time({Id, Entry, {spawn, _, _}}, _, Times) -> witness_log_recording_times:find({Id, Entry}, spawn, Times);
time({Id, Entry, {send, _, _, sure}}, _, Times) -> witness_log_recording_times:find({Id, Entry}, sent, Times);
time({Id, Entry, {recv, _, _}}, _, Times) -> witness_log_recording_times:find({Id, Entry}, taken, Times);
time({Id, Entry, {exit, _, _}}, _, Times) -> witness_log_recording_times:find({Id, Entry}, exit, Times);
time(_, _, Times) -> {undefined, Times}.

%% A report may release events of earlier ones, which have none.
put_time(Time, {Id, Entry, What}, {Item, {Id, Entry} = Place}) when is_integer(Time) ->
    case lists:member(element(1, Item), kinds(element(1, What))) of
        true -> {setelement(tuple_size(Item), Item, Time), Place};
        false -> {Item, Place}
    end;
put_time(_, _, Placed) -> Placed.

kinds(Birth) when Birth =:= born; Birth =:= spawn -> [fork, init, attached];
kinds(Kind) -> [Kind].

end_time(Report, Recording) ->
    case witness_log_recording:ended_at(Recording) of
        none -> Report;
        Time -> Report#{ended_at => Time}
    end.

-doc """
The same, and folds over what processes report, with every detail if the option `whole` is set. The function that makes the
first accumulator gets the processes of the recording.
""".
-spec fold_reports(fun((witness_replay_emitter:report(), Acc) -> Acc), fun(([witness_log_recording:process()]) -> Acc),
                   options()) ->
    {ok, report(), Acc} | {error, error()} | {error, error(), Acc}.
fold_reports(Fun, First, Options) ->
    maybe
        {ok, Recording, Code, Atoms} ?= prepare(Options),
        {ok, Processes} ?= witness_log_recording:processes(Recording),
        witness_replay_vm:fold(Fun, First(Processes), Recording, Code, Atoms, Options)
    end.

-doc "The same, and finds the calls of a function and what they returned, up to 10,000.".
-spec calls(witness_replay_traced:named(), options()) -> {ok, report(), witness_replay_traced:found()} | {error, error()}.
calls(Function, Options) ->
    maybe
        {ok, Recording, Code, Atoms} ?= prepare(Options),
        {error, Reason, _} ?= witness_replay_vm:fold({Function, fun(Found, _) -> Found end}, none, Recording, Code, Atoms, Options),
        {error, Reason}
    end.

-doc """
Starts a replay in which each process stops when it has passed the given number of entries of its log
(`m:witness_replay_breakpoint`). The result is the port of its VM, and a folder to delete afterwards.
""".
-spec start_stopped(#{pos_integer() => non_neg_integer() | infinity}, options()) ->
    {ok, port(), file:filename()} | {error, error()}.
start_stopped(Limits, Options) ->
    maybe
        {ok, _, Code, Atoms} ?= prepare(Options),
        witness_replay_vm:open(Code, Atoms, Limits, Options)
    end.

fold_items(Items, Fun, Acc) -> lists:foldl(fun({Item, Place}, A) -> Fun(Item, Place, A) end, Acc, Items).

prepare(Options) ->
    maybe
        ok ?= witness_option:check(Options, witness_option_schema:replay()),
        ok ?= witness_replay_functions:check_option(maps:get(functions, Options, #{})),
        {ok, _} ?= witness_event_wrapper:table(maps:get(signatures, Options, [])),
        ok ?= check_trust(Options),
        {ok, Recording} ?= witness_log_recording:open(maps:get(dir, Options), maps:with([signatures], Options)),
        ok ?= check_replayable(Recording),
        {ok, Atoms} ?= witness_log_recording:atoms(Recording),
        {ok, Code} ?= witness_replay_code:prepare(Recording, Options),
        ok ?= check_unchanged(Code, Options),
        {ok, Recording, Code, Atoms}
    end.

-doc """
Whether the code that the recording names may run: the caller trusts it, or this account has recorded it on this machine. Every
function that replays calls this first. Until it succeeds, the recording is only read as data.
""".
-spec check_trust(#{dir := file:filename(), trust => boolean(), any() => any()}) -> ok | {error, error()}.
check_trust(#{trust := true}) -> ok;
check_trust(#{dir := Dir}) ->
    case witness_record_seal:verify(Dir) of
        ok -> ok;
        {error, Why} ->
            maybe
                {ok, Recording} ?= witness_log_recording:open(Dir),
                %% If the recording cannot be replayed in any case, trust does not matter.
                ok ?= check_replayable(Recording),
                {error, {?MODULE, {untrusted, Why, witness_replay_trust:named(witness_log_recording:header(Recording))}}}
            end
    end.

waiting(Recording) ->
    case witness_log_recording:waiting(Recording) of
        none -> {ok, none};
        Read -> Read
    end.


%% Processes are identified by their pids, and the program gets pids and references of the recording instead of those of this
%% VM. Another build of OTP would have others.
check_replayable(Recording) ->
    Own = list_to_binary(string:trim(erlang:system_info(system_version))),
    Version = list_to_binary(erlang:system_info(version)),
    case witness_log_recording:header(Recording) of
        #{system := System, erts := Erts} when Erts =/= Version -> {error, {?MODULE, {release, System, Own}}};
        #{erts := Version, node := _} = Header ->
            case witness_log_recording:refusals(Recording) of
                {ok, []} -> witness_replay_trust:check(Header);
                {ok, [Reason | _]} -> {error, {?MODULE, Reason}};
                {error, _} = Error -> Error
            end;
        _ -> {error, {?MODULE, no_code}}
    end.

check_unchanged(#{changed := [_ | _] = Changed}, Options) ->
    case Options of
        #{allow_changed := true} -> ok;
        #{} -> {error, {?MODULE, {changed, Changed}}}
    end;
check_unchanged(_, _) -> ok.

-doc "An error as text.".
-spec format_error(reason()) -> unicode:chardata().
%% Only these: another VM may have sent the reason.
format_error({untrusted, {Module, Reason}, Named}) when Module =:= witness_record_seal; Module =:= witness_record_key ->
    witness_replay_trust:format(Module:format_error(Reason), Named);
format_error({header, What}) -> [~"its header cannot be replayed: ", What];
format_error({release, Recorded, Own}) ->
    [~"it was recorded with another build of OTP, and can only be replayed with that one\n  recorded: ", Recorded,
     ~"\n  here:     ", Own];
format_error(late = Reason) -> witness_log_recording_refusal:format(Reason);
format_error(tracing_only = Reason) -> witness_log_recording_refusal:format(Reason);
format_error({node, _} = Reason) -> witness_log_recording_refusal:format(Reason);
format_error(no_code = Reason) -> witness_log_recording_refusal:format(Reason);
format_error({unwoven, _} = Reason) -> witness_log_recording_refusal:format(Reason);
format_error(no_processes) -> ~"there is no process in it";
format_error({number, Id}) ->
    [~"a process in it has the number ", integer_to_binary(Id), ~", and the greatest that can be replayed is 4294967295"];
format_error({two, Pid}) -> [~"two processes in it had the same identifier, ", Pid, ~", which cannot be replayed"];
format_error({no_pid, Term}) -> [~"the identifier of a process in it is none of its VM: ", Term];
format_error({folder, Dir}) ->
    [~"there is no folder ", name(Dir), ~", whose modules were recorded; --pa names another one"];
format_error({calls, Calls}) ->
    [~"it was recorded with another table of calls, and cannot be replayed with this one: ",
     witness_event:format_term(Calls, 300)];
format_error({kept, File, Text}) -> ["the code that is kept with the recording cannot be read: ", File, ": ", Text];
format_error({changed, Modules}) ->
    [~"modules have changed since it was recorded: ", names(Modules), ~". --allow-changed replays it nevertheless"];
format_error({file, Reason}) when is_atom(Reason) ->
    [~"a file of the replay's VM could not be written in the cache: ", file:format_error(Reason)];
format_error({file, Reason}) -> [~"a file could not be written: ", witness_event:format_term(Reason, 200)];
format_error({functions, Refused}) -> witness_replay_functions:format_error(Refused);
format_error({traced, Reason}) -> witness_replay_traced:format_error(Reason);
format_error({vm, {unreadable, Text}}) -> Text;
format_error({vm, {process, Id, killed}}) ->
    [~"the VM of the replay has ended process ", integer_to_binary(Id),
     ~", which had more to do: a limit for all heaps (+hmax) is lower than while it was recorded"];
format_error({vm, {exit_status, Status}}) ->
    [~"the VM of the replay has ended by itself, with status ", integer_to_binary(Status),
     ~", as it does where there is no memory for what the program wants"];
format_error({vm, Reason}) -> [~"the VM of the replay has failed: ", witness_event:format_term(Reason, 1000)].

names(Modules) -> lists:join(~", ", [atom_to_binary(Module) || Module <- Modules]).

name(Name) ->
    case unicode:characters_to_binary(Name) of
        Text when is_binary(Text) -> Text;
        _ -> witness_event:format_term(Name, 500)
    end.
