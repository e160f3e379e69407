-module(witness_search).
-moduledoc """
Searches for a run in which a program goes wrong: runs the unmodified program again and again, each time by a schedule that is decided
here, in a VM of its own (`docs/internals/search.md`).

```erlang
1> witness_search:search(#{run => {last_seat, main, [1]}, pa => ["_build/racy"], dir => "found.rec",
                           specs => ["examples/last_seat/sold_once.hml"]}).
{ok,#{outcome => {violated,<<"examples/last_seat/sold_once.hml:2">>,<<"sold_once">>},schedules => 2,recorded => "found.rec",...}}
```

The run that has failed is written as a recording, which `m:witness_replay` replays, and all other commands read.
""".

-export([search/1, format_error/1]).

-export_type([options/0, report/0, error/0, reason/0, crashes/0, step/0, pair/0, failure/0]).

-doc """
- `run`: the function and its arguments; `pa`, `weave`, `cache`, `vm_args`, `syntax`, `on_progress`, `environment`, `config`: as for
  `t:witness_record:options/0`;
- `applications`: in each run they are started before the function is called, with all that they need, and stopped when it has returned
  and nothing more happens (`m:witness_search_applications`);
- `dir`: the folder for the recording, which must not exist;
- `specs`: files of specifications; a violation is a failure; `include`: folders of files that they include;
- `signatures`: as for `t:witness_record:options/0`;
- `all`: goes on after a failure, and groups failures by their cause (`m:witness_search_cause`): then `dir` has a folder for each
  recording, `1`, `2` and so on (`false`);
- `schedules`: how many to try (1,000); `for`: milliseconds after which no further one begins; `seed`: a number, from which all
  schedules follow (1);
- `steps`: the most steps of a run (10,000): a run that has not ended then is a failure;
- `strategies`: which take turns, also `surw` (`[pct, pos, random]`, `m:witness_search_strategy`); `depth`: for `pct` (3);
- `deadlocks`: whether it is a failure if the function waits for ever (`true`);
- `busy_ms`: how many milliseconds a process may run without an operation (10,000): longer is a failure;
- `memory`: how many bytes the VM of the search may take, with all that is in it (1 GiB): a run that needs more ends the search;
- `schedule`: runs only the schedule with this number, and records it whatever comes of it;
- `period`: after so many schedules the same ones come again: each must be the same run;
- `step_digests`: the report has a digest of the steps of each schedule, the last one first: equal runs have equal ones;
- `left`: whether it is a failure if another process waits for ever when the function has ended (`false`);
- `mailboxes`: whether it is a failure if another process has messages when the function has ended and nothing more can happen (`false`);
- `crashes`: which ends of processes are a failure, `t:crashes/0` (`unnoticed`); `normal`: atoms that are as good a reason as `normal`
  for `any`, alone or as the first element of a tuple (`[]`);
- `expect`: what the function must return: it is a failure if it returns another value, or ends without returning (`ok` for
  `eunit:test/1,2`);
- `timeouts`: `late`: a timeout comes when nothing else can happen, the earliest first; `any`: each one may come at any moment (`late`);
- `delivery`: `causal`: a message is in the mailbox when it is sent; `pairwise`: it comes later, as between nodes, but never before an
  older one of the same sender to the same process (`causal`);
- `on_schedules`: is called with 0 when the first one begins, and then some times a second with the number of schedules so far. If it
  returns `stop`, no further one begins.
""".
-type options() :: #{run := {module(), atom(), [term()]}, dir := file:filename(), pa => [file:filename()], weave => [atom()],
                     applications => [atom()], environment => [{atom(), [{atom(), term()}]}], config => file:filename(),
                     specs => [file:filename()], include => [file:filename()], signatures => [witness_event_wrapper:row()],
                     all => boolean(), schedules => pos_integer(), for => pos_integer() | infinity, seed => non_neg_integer(),
                     steps => pos_integer(),
                     strategies => [witness_search_strategy:name(), ...], depth => pos_integer(), deadlocks => boolean(),
                     left => boolean(), mailboxes => boolean(), crashes => crashes(), normal => [atom()], expect => term(),
                     timeouts => witness_search_world:timeouts(),
                     busy_ms => pos_integer(), memory => pos_integer(), schedule => pos_integer(), period => pos_integer(),
                     step_digests => boolean(),
                     delivery => witness_search_world:delivery(),
                     cache => file:filename(), vm_args => [string()], syntax => auto | erlang | elixir,
                     on_progress => fun((iodata()) -> term()), on_schedules => fun((non_neg_integer()) -> term())}.

-doc """
- `unnoticed`: the function fails, or another process ends by an error that no process is told of;
- `any`: a process ends by any reason other than `normal`;
- `assertions`: a process ends by a failed assertion of `stdlib/include/assert.hrl`;
- `none`: no end of a process is a failure.
""".
-type crashes() :: unnoticed | any | assertions | none.

-doc """
- `outcome`: `passed`, `interrupted` (by `on_schedules`), or how a run has failed (`t:witness_search_scheduler:outcome/0`); `unmonitored`
  if none has failed, and no process had a signature that a specification names;
- `coverage`: what the monitors of all runs have matched, as in `t:witness:summary/0`; `warnings`: the properties without a monitor, and
  those of which no action has matched;
- `schedules`: how many runs there were; `elapsed_ms`: how long they took; `number` and `strategy`: which of them has failed, the first
  one being that of no strategy; `length`: how many steps it has; `switches`:
  how often another process went on than the one that had acted, although that one could have gone on;
- `reversed`: the pairs of steps that are enough for the failure if they come in this order, which they do not in the default order, in
  which a process goes on as long as it can (`m:witness_search_reversal`); `explanation`: the steps that led to it, unless it is a
  violation, which a replay explains;
- `processes`: those that the outcome names and those that are left, with where they are;
- `unfaithful`: what made runs depend on more than their schedule, each once: `{Kind, What}`;
- `recorded`: the folder of the recording.

With `all` the outcome is `failed` if there are `failures`, in the order in which they were found: each has the keys above that are about
one run, and `count`, in how many schedules there was one with the same cause. At most 20 are told apart: `omitted` is the number of
schedules that have failed in other ways. `ended`: why there were no more schedules. If it is a run without a result (`no_result`), or an
error, as of one that cannot be repeated, and there was no failure before, that is the result of the search as without `all`.
""".
-type report() :: #{outcome := passed | unmonitored | interrupted | failed | witness_search_scheduler:outcome(),
                    schedules := non_neg_integer(),
                    elapsed_ms := non_neg_integer(),
                    unfaithful := [term()], coverage := [map()], warnings := [witness:warning()], digests := [binary()],
                    number => pos_integer(),
                     strategy => none | witness_search_strategy:name(),
                    length => non_neg_integer(), switches => non_neg_integer(),
                    reversed => [pair()], explanation => witness_search_chart:explanation(),
                    processes => #{witness_search_world:id() => process()}, recorded => file:filename(),
                    failures => [failure()], omitted => non_neg_integer(),
                    ended => schedules | time | interrupted | {no_result, map()} | {error, reason()}}.

-doc "Runs that have failed with the same cause; the other keys are those of the first one (`t:report/0`).".
-type failure() :: #{outcome := witness_search_scheduler:outcome(), count := pos_integer(), number := pos_integer(),
                     recorded := file:filename(), atom() => term()}.

-doc "What acts, with the module of its process, and what it does (`m:witness_search_world`).".
-type step() :: #{pid := pid() | undefined, module := module() | undefined, kind := process | signal | timeout | timer,
                  what := term()}.

-doc """
Two steps. `never`: which of them do not happen in the run. A second step then comes too late: the run has failed before, or its process
does something else. If the first one never happens, the second one waits until nothing else is possible.
""".
-type pair() :: #{first := step(), second := step(), never := [first | second]}.

-type process() :: #{pid := pid(), signature := witness_event:signature(), stack => [term()], waits => boolean(),
                     messages => [term()]}.

-type error() :: {?MODULE, reason()} | {witness_record, witness_record:reason()} | witness_spec:error() | witness_option:error()
                | witness_event_wrapper:error().

-doc """
`generator`: the function returns tests of EUnit, and runs none; `exists`: the folder is there already; `functions`: calls of these
functions cannot be observed; `uncontrolled`: the module of the
function cannot be woven; `vm`: the VM of the search has ended; `not_written`: the recording could not be written; `not_started`: an
application that the program needs, such as `elixir`, does not start in that VM.
""".
-type reason() :: {generator, module(), atom()} | {exists, file:filename()} | {functions, [witness_replay_functions:refusal(), ...]}
                | {uncontrolled, module(), witness_weave_error:reason()}
                | {not_started, atom(), term()} | {vm, term()} | {not_written, term()}
                | {not_repeated, pos_integer(), Unfaithful :: [term()]}.

-doc "Searches. The caller waits.".
-spec search(options()) -> {ok, report()} | {error, error()}.
search(Given) ->
    maybe
        ok ?= witness_option:check(Given, witness_option_schema:search()),
        Options = #{run := Run, dir := Dir, specs := Files} =
            expecting(maps:merge(witness_option:defaults(witness_option_schema:search()), Given)),
        ok ?= check_function(Run),
        ok ?= check_new(Dir),
        Apps = witness_record_needs:apps(maps:with([run, dir, pa, weave], Options)),
        Needed = Options#{weave => lists:uniq(maps:get(weave, Options, []) ++ Apps)},
        {ok, Complete} ?= witness_event_wrapper:for_recording(Needed),
        {ok, Specs, _} ?= witness_search_monitors:compile(Files, (maps:with([include], Options))#{receives => taken}),
        {ok, Code, Observed} ?= code(witness_search_monitors:functions(Specs), Complete),
        {ok, Report} ?= run(Specs, Observed, Code, Complete),
        {ok, sealed(maps:merge(maps:with([expect], Options), Report), Code)}
    end.

%% EUnit returns whether the tests have passed.
expecting(#{run := {eunit, test, _}} = Options) when not is_map_key(expect, Options) -> Options#{expect => ok};
expecting(Options) -> Options.

%% It would pass, whatever its tests do.
check_function({Module, Function, []}) ->
    case string:find(atom_to_list(Function), "_test_", trailing) of
        "_test_" -> {error, {?MODULE, {generator, Module, Function}}};
        _ -> ok
    end;
check_function(_) -> ok.

check_new(Dir) ->
    case filelib:is_file(Dir) of
        false -> ok;
        true -> {error, {?MODULE, {exists, Dir}}}
    end.

code(Functions, Options) ->
    Program = (maps:with([run, pa, weave, applications], Options))#{dir => ""},
    Outside = outside(witness_record_code:outside(Program)),
    maybe
        {ok, Dirs} ?= witness_record_code:folders(Program),
        {ok, Folders} ?= witness_record_code:objects(Dirs, maps:with([cache], Options)),
        Module = element(1, map_get(run, Options)),
        ok ?= check_module(Module, Folders),
        {ok, Observed} ?= observed(Functions, Folders, witness_record_code:user(Program)),
        Plan = (witness_search_calls:plan(Folders))#{functions => witness_replay_functions:woven(Functions)},
        {ok, #{left := Left} = Woven} ?= witness_record_code:woven(Folders, Plan, maps:with([cache, on_progress], Options)),
        [] ?= [Reason || {Name, Reason} <- Left, Name =:= Module],
        Archive = witness_record_kept:archive(Folders, witness_record_code:user(Options),
                                              witness_record_code:cache(maps:with([cache], Options))),
        {ok, (maps:remove(left, Woven))#{unwoven => [Name || {Name, _} <- Left], calls => witness_record_calls:calls(Plan),
                                         digests => witness_record_code:digests(Folders), outside => Outside,
                                         archive => Archive}, Observed}
    else
        {error, {?MODULE, _}} = Error -> Error;
        {error, Reason} -> {error, {witness_record, Reason}};
        [Why | _] -> {error, {?MODULE, {uncontrolled, element(1, map_get(run, Options)), Why}}}
    end.

%% The logger of Elixir changes that of the VM.
outside(Apps) ->
    case lists:member(elixir, Apps) of
        true -> [logger | Apps];
        false -> Apps
    end.

%% A function that is called for real does nothing that can be scheduled.
check_module(Module, Folders) ->
    case [Object || #{objects := Objects} <- Folders, {Name, Object} <- Objects, Name =:= Module] of
        [{File, Binary} | _] ->
            case witness_weave:forms({Module, File, Binary}) of
                {ok, _, _} -> ok;
                {error, Reason} -> {error, {?MODULE, {uncontrolled, Module, Reason}}}
            end;
        [] -> ok
    end.

observed(Functions, Folders, User) ->
    case witness_replay_functions:observe(Functions, Folders, User) of
        {ok, Observed} -> {ok, Observed};
        {refused, Refused} -> {error, {?MODULE, {functions, Refused}}}
    end.

run(Specs, Observed, Code, #{dir := Dir} = Options) ->
    Given = maps:with([run, applications, environment, seed, all, schedules, for, steps, strategies, depth, deadlocks, left,
                       mailboxes, crashes, normal, expect, timeouts, delivery, busy_ms, memory, syntax, signatures, schedule,
                       period, step_digests], Options),
    Again = #{pa => witness_record_code:user(Options), weave => maps:get(weave, Options, [])},
    Job = maps:merge(Given, maps:with([woven, unwoven, calls, handler, digests, outside], Code)),
    case witness_search_vm:search(Job#{code => Again, dir => filename:absname(Dir), specs => Specs,
                                      observed => Observed}, Code, Options) of
        {ok, Report} -> {ok, covered(Report)};
        {error, Reason} -> {error, {?MODULE, Reason}}
    end.

%% A search that has monitored nothing says nothing about its specifications.
covered(#{outcome := Outcome, properties := Properties, taken := Taken, seen := Seen} = Report) ->
    #{coverage := Coverage, warnings := Warnings, unmonitored := All} = witness_search_monitors:coverage(Properties, Taken, Seen),
    (maps:without([properties, taken, seen], Report))#{
        coverage => Coverage, warnings => Warnings,
        outcome := case Outcome of passed when All -> unmonitored; _ -> Outcome end}.

%% The modules are kept with the recording, so that it replays after they have changed. If they cannot be, or it cannot be sealed,
%% the command that replays it says so.
sealed(#{recorded := Dir} = Report, #{archive := Archive}) ->
    _ = witness_record_kept:write(Dir, Archive),
    _ = witness_record_seal:seal(Dir),
    Report;
sealed(#{failures := Failures} = Report, Code) ->
    lists:foreach(fun(Failure) -> sealed(Failure, Code) end, Failures),
    Report;
sealed(Report, _) -> Report.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({generator, Module, Function}) ->
    Term = fun(Atom) -> witness_event:format_term(Atom, 200) end,
    [Term(Module), $:, Term(Function), ~"() returns tests of EUnit, and runs none of them. EUnit runs them in eunit:test({generator,", Term(Module),
     $,, Term(Function), ~"}), with --weave eunit --expect ok (in Erlang weave => [eunit], expect => ok)"];
format_error({exists, Dir}) -> [Dir, ~": it exists; name a folder that does not"];
format_error({functions, Refused}) -> witness_replay_functions:format_error(Refused);
format_error({not_started, App, Reason}) ->
    [~"the application ", witness_event:format_term(App, 100), ~" does not start: ", witness_event:format_term(Reason, 500)];
format_error({vm, {exit_status, Status}}) ->
    [~"the VM of the search has ended with status ", integer_to_binary(Status),
     ~": the program needs far more memory at once than --memory allows, or it has ended the VM by something that is not controlled"];
format_error({vm, {silent, Called}}) ->
    [~"the VM of the search was busy for too long, and is killed: a native function blocks it",
     case Called of
         {Function, Stack} ->
             [~". The last one that the program has called for the first time is ", witness_event:format_function(Function),
              [[~", by ", witness_event:format_function({Module, Caller, Arity}),
            [[~" (", File, $:, integer_to_binary(Line), $)] || {file, File} <- Location, {line, Line} <- Location]]
           || {Module, Caller, Arity, Location} <- lists:sublist(Stack, 1), is_integer(Arity)]];
         none -> []
     end];
format_error({uncontrolled, Module, Reason}) ->
    [atom_to_binary(Module), ~" cannot be controlled: ", witness_weave:format_error(Reason)];
format_error({vm, Reason}) -> [~"the VM of the search has ended: ", witness_event:format_term(Reason, 1000)];
format_error({not_written, Reason}) -> [~"the recording could not be written: ", witness_event:format_term(Reason, 1000)];
format_error({not_repeated, Number, Unfaithful}) ->
    [~"schedule ", integer_to_binary(Number), ~" has failed, and not when it ran again: the program depends on more than its schedule"
     | [[~"; unfaithful: ", lists:join(~", ", [witness_search_unfaithful:format(One) || One <- Unfaithful])] || Unfaithful =/= []]].
