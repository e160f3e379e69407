-module(witness_test).
-moduledoc """
Monitors in tests: EUnit and Common Test. For ExUnit there is `Witness.Case`.

`check/2` runs a part of a test under observation. The test fails when a specification is violated, with the same
explanation as on the command line:

```erlang
adds_test() ->
    witness_test:check(["specs/sum.hml"], fun() ->
        {ok, Calc} = calc:start_link(),
        ?assertEqual(3, calc:add(Calc, 1, 2)),
        calc:stop(Calc)
    end).
```

```
  1) calc_tests:adds_test/0
     {violation,["VIOLATION of answer_is_the_sum (specs/sum.hml:3)",
                 "  by <0.198.0>, calc:init([])",
                 ...
```

The fun runs in a process of its own, and its descendants are observed. The process has the group leader, the process
dictionary and the flag `trap_exit` of the caller, and the caller as its `$callers` and `$ancestors`. `check/2` returns
what the fun returns, and raises what the fun raises. When the fun has returned, its process ends with the reason
`shutdown`, and so do linked processes. Then `check/2` waits for the processes that the fun has started, so that every
event counts, and everything that a specification demands is decided.

In specifications the process of the fun has the signature `witness_test:run(_)`.

Observed are also the processes that a running process starts on behalf of these, while it handles a call of one of them: what a
supervisor of an application starts for the test (`on_behalf` of `witness:start/1`, over `native`; `on_behalf => false` switches it off).
With the option `scope => node` everything on the node is observed, other tests included. In either case `check/2` waits only for the fun
and its descendants.

Any number of tests may do this in a node at the same time. Each observes only what it has started, or what was started on its behalf.

## What fails a test

| Problem | Raised in the test |
|---|---|
| a specification was violated | `error:{violation, Lines}` |
| processes still run after `timeout` | `error:{still_running, Lines}` |
| events are missing, a monitor has crashed, or the like, so that no verdict can be relied on | `error:{no_result, Lines}` |
| no process had a signature that a specification names (`unmonitored`) | `error:{nothing_monitored, Lines}` |
| with `vacuous => fail`: verdicts without any action but the birth having matched | `error:{vacuous, Lines}` |
| a specification or an option is wrong | `error:{not_started, Lines}` |

Undecided verdicts at the end do not fail a test. Nor does an inline monitor without a verdict, if a signal has ended its
process, as a supervisor ends its children: a warning names the property and the function of the process. If the fun raises,
that exception is raised, and other problems are printed. EUnit on its own cuts long terms: it shows them whole with the option `{print_depth, 100}`; rebar3 does not
cut them.

## Options

Those of `witness:start/1` for a system that runs, such as `source` or `include`, and

| Option | Value | Default |
|---|---|---|
| `timeout` | milliseconds that processes may take to end after the fun has returned, or `infinity` | `5000` |
| `wait` | whether to wait for them; with `false` observation ends as the fun returns | `true` |
| `unmonitored` | `fail`, `warn` or `ignore` when nothing was monitored | `fail` |
| `vacuous` | `fail`, `warn` or `ignore` when all verdicts of a property were vacuous | `warn` |
| `base` | a folder, see below | that of the fun's source |

Warnings are printed, so that they appear with the output of the test.

## Searches

`search/3` runs a function by many schedules, each of which decides which process goes on next (`m:witness_search`), and fails the test if one
of these runs goes wrong: if it violates a specification, if an assertion in it fails, if a process crashes, or if it waits for ever.

```erlang
-export([two_people_want_the_last_seat/0]).

seat_is_sold_once_test_() ->
    {timeout, 300, fun() ->
        witness_test:search("specs/sold_once.hml", {?MODULE, two_people_want_the_last_seat, []}, #{schedules => 200})
    end}.
```

The function is `{Module, Function, Arguments}`, which is exported, or `fun two_people_want_the_last_seat/0`, which need not be. It runs in a VM
of its own, where nothing of the test's VM exists, no process, application or other fun. So it starts what it needs. The code is that of the folders of the code path but those of
OTP and Elixir; the option `pa` names others.

The failure says after how many schedules the run was found, what went wrong, and how to replay it: the recording is a folder
`recording-...` in the current folder, in Common Test that of the logs, or the one that the option `dir` names. Options are those of
`t:witness_search:options/0`, such as `schedules`, `for`, `seed` or `expect`, and `base`, `unmonitored` and `vacuous`.

| Problem | Raised in the test |
|---|---|
| a run violated a specification | `error:{violation, Lines}` |
| a run went wrong otherwise | `error:{failed_schedule, Lines}` |
| no process had a signature that a specification names (`unmonitored`) | `error:{nothing_monitored, Lines}` |
| with `vacuous => fail`: no action of a property has matched in any run | `error:{vacuous, Lines}` |
| the function cannot be controlled or repeated | `error:{no_result, Lines}` |
| a specification, an option or the function is wrong | `error:{not_started, Lines}` |

A search takes seconds, and up to a minute when the code is prepared for the first time. EUnit gives a test five seconds, unless it has a `timeout`.

## Specifications

A file, a monitor `{{Module, Function, Arity}, {Monitor, Arg}}`, or a list of these. A relative name is looked for in
the current folder, then in the folder of the source of the fun's module, then in each folder above it. So
`specs/sum.hml` may be beside the tests or beside the `rebar.config`, for EUnit and for Common Test.
""".

-export([check/2, check/3, search/2, search/3]).
-export([run/1, watch/3, allow/2, finish/1, observe/3, print/1]).

-export_type([specs/0, options/0, search_options/0, watch/0, outcome/0]).

%% Minimum columns of a line in an exception.
-define(MIN_COLUMNS, 40).

-doc "Specification files and monitors.".
-type specs() :: spec() | [spec()].

-type spec() :: file:name_all() | {witness_options:signature_pattern(), {module(), Arg :: term()}}.

-doc "The options of `check/3`.".
-type options() :: #{timeout => timeout(), wait => boolean(), unmonitored => rule(), vacuous => rule(),
                     base => file:name_all(), atom() => term()}.

-doc "The options of `search/3`: those of `t:witness_search:options/0` without `run` and `specs`, and `base`, `unmonitored` and `vacuous`.".
-type search_options() :: #{base => file:name_all(), unmonitored => rule(), vacuous => rule(), schedules => pos_integer(),
                            seed => non_neg_integer(), expect => term(), atom() => term()}.

-type rule() :: fail | warn | ignore.

-doc "A run for a test, with the options of the test.".
-opaque watch() :: {witness:run(), rules()}.

-doc "Whether the test has passed, or what is wrong with it, as lines for people.".
-type outcome() :: ok | {failed, witness_test_result:problem() | failed_schedule | not_started, Lines :: [binary()]}.

-type rules() :: #{timeout := timeout(), wait := boolean(), unmonitored := rule(), vacuous := rule(),
                   base := file:name_all() | undefined, redact := boolean(), scope := tree | node | children, test := [pid()]}.

-type returned() :: {returned, term()} | {raised, error | exit | throw, term(), erlang:stacktrace()}.

-doc "`check/3` without options.".
-spec check(specs(), fun(() -> Result)) -> Result.
check(Specs, Fun) -> check(Specs, Fun, #{}).

-doc "Runs the fun under observation, and returns what it returns, or fails; see above.".
-spec check(specs(), fun(() -> Result), options()) -> Result.
check(Specs, Fun, Options) when is_function(Fun, 0), is_map(Options) ->
    case observe(Specs, Fun, Options) of
        {{returned, Result}, ok} -> Result;
        {{raised, Class, Reason, Stack}, Outcome} ->
            print(Outcome),
            erlang:raise(Class, Reason, Stack);
        {_, {failed, Problem, Lines}} -> fail(Problem, Lines, stacktrace(Fun))
    end.

-doc "`search/3` without options.".
-spec search(specs(), witness_test_search:searched()) -> ok.
search(Specs, Function) -> search(Specs, Function, #{}).

-doc "Runs the function by many schedules, and fails if it goes wrong in one; see above.".
-spec search(specs(), witness_test_search:searched(), search_options()) -> ok.
search(Specs, Function, Options) when is_map(Options) ->
    {Outcome, Warnings} = witness_test_search:search(Specs, Function, Options),
    print_warnings(Warnings),
    case Outcome of
        ok -> ok;
        {failed, Problem, Lines} -> fail(Problem, Lines, stacktrace(Function))
    end.

-spec fail(atom(), [binary()], erlang:stacktrace()) -> no_return().
fail(Problem, Lines, Stack) -> erlang:raise(error, {Problem, [pad_line(Line) || Line <- Lines]}, Stack).

%% Printers of terms show a list of strings line by line, on two conditions. No two of the strings fit on one line. No string has
%% a character beyond Latin-1, for which numbers would be printed.
pad_line(Line) ->
    lists:flatten(string:pad([latin_1(Char) || Char <- unicode:characters_to_list(Line)], ?MIN_COLUMNS)).

latin_1(Char) when Char < 256 -> Char;
latin_1(Char) -> io_lib:format("\\x{~.16B}", [Char]).

%% The place of the test. If the call is a tail call, only the function shows the place.
stacktrace(Fun) when is_function(Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    {name, Name} = erlang:fun_info(Fun, name),
    stacktrace({Module, Name, []});
stacktrace({Module, Name, Args}) when is_atom(Module), is_list(Args) ->
    Frames = stacktrace(),
    case lists:keymember(Module, 1, Frames) of
        true -> Frames;
        false -> [{Module, Name, length(Args), [{file, witness_test_files:source_file(Module)}, {line, 0}]} | Frames]
    end;
stacktrace(_) -> stacktrace().

stacktrace() ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    [Frame || Frame = {M, _, _, _} <- Stack, M =/= ?MODULE, M =/= erlang].

%% --- a fun under observation -----------------------------------------------------

-doc false.
-spec observe(specs(), fun(() -> term()), options()) -> {returned() | none, outcome()}.
observe(Specs, Fun, Options) ->
    Ref = make_ref(),
    Body = test_body(Fun, self(), Ref),
    case start(Specs, {?MODULE, run, [Body]}, maps:merge(#{base => witness_test_files:source_folder(Fun)}, Options)) of
        {ok, {Run, Rules}} ->
            case execute(Run, Ref) of
                {run_died, Reason} -> {none, {failed, no_result, witness_test_result:lines(
                                                   witness:format_error({witness_run, {run_died, Reason}}))}};
                {Body1, Returned} ->
                    #{wait := Wait} = Rules,
                    _ = Wait andalso release(Body1),
                    {Outcome, #{system := System, warnings := Warnings}} = finish_run({Run, Rules#{test := [element(1, Body1)]}}),
                    print_warnings(Warnings),
                    _ = Wait orelse release(Body1),
                    {returned_or_crash(Returned, System), Outcome}
            end;
        {error, Lines} -> {none, {failed, not_started, Lines}}
    end.

%% The reason that ended the process of the fun: from its monitor or, if it died before the monitor was set, from the run.
returned_or_crash({killed, noproc}, {crashed, Reason}) -> {raised, exit, Reason, []};
returned_or_crash({killed, Reason}, _) -> {raised, exit, Reason, []};
returned_or_crash(Returned, _) -> Returned.

execute(Run, Ref) ->
    Watching = monitor(process, Run),
    Executed = receive
        {Ref, hello, Body} ->
            Monitor = monitor(process, Body),
            _ = start_guard(Body),
            Body ! {Ref, go},
            receive
                {Ref, Returned} -> demonitor(Monitor, [flush]), {{Body, Ref}, Returned};
                {'DOWN', Monitor, process, Body, Reason} -> {{Body, Ref}, {killed, Reason}};
                {'DOWN', Watching, process, Run, Reason} ->
                    exit(Body, kill),
                    demonitor(Monitor, [flush]),
                    {run_died, Reason}
            end;
        {'DOWN', Watching, process, Run, Reason} -> {run_died, Reason}
    end,
    demonitor(Watching, [flush]),
    Executed.

release({Body, Ref}) -> Body ! {Ref, leave}, ok.

%% If the test is killed, for example after a timeout, the processes that it started end too.
start_guard(Body) ->
    Test = self(),
    spawn(fun() ->
        Ended = monitor(process, Body),
        Given = monitor(process, Test),
        receive
            {'DOWN', Ended, process, _, _} -> ok;
            {'DOWN', Given, process, _, _} -> exit(Body, kill)
        end
    end).

test_body(Fun, Caller, Ref) ->
    {trap_exit, Trap} = process_info(self(), trap_exit),
    Dictionary = get(),
    Callers = [Caller | proplists:get_value('$callers', Dictionary, [])],
    Ancestors = [Caller | proplists:get_value('$ancestors', Dictionary, [])],
    fun() ->
        Test = monitor(process, Caller),
        Caller ! {Ref, hello, self()},
        receive
            {Ref, go} -> demonitor(Test, [flush]);
            {'DOWN', Test, process, _, _} -> exit(shutdown)
        end,
        lists:foreach(fun({Key, Value}) -> put(Key, Value) end,
                      Dictionary ++ [{'$callers', Callers}, {'$ancestors', Ancestors}]),
        process_flag(trap_exit, Trap),
        Caller ! {Ref, try {returned, Fun()} catch Class:Reason:Stack -> {raised, Class, Reason, Stack} end},
        receive {Ref, leave} -> ok end
    end.

-doc "The process of a test's fun. Specifications may name this function.".
-spec run(fun(() -> ok)) -> no_return().
run(Body) ->
    ok = Body(),
    exit(shutdown).

%% --- a test that runs by itself --------------------------------------------------

-doc false.
-spec watch(specs(), [witness_instrument:parent()], options()) -> {ok, watch()} | {error, Lines :: [binary()]}.
watch(Specs, Parents, Options) -> start(Specs, {children, Parents}, Options).

-doc "From now on the test observes what this process starts.".
-spec allow(watch(), pid()) -> ok | {error, Lines :: [binary()]}.
allow({Run, _}, Process) ->
    case witness:allow(Run, Process) of
        ok -> ok;
        {error, Error} -> {error, witness_test_result:lines(witness:format_error(Error))}
    end.

-doc "How the test has ended, how many monitors there were, and what else the user should know.".
-spec finish(watch()) -> {outcome(), #{monitored := non_neg_integer(), warnings := [binary()], unmonitored := [binary()], _ => _}}.
finish(Watch) -> finish_run(Watch).

start(Specs, System, Options) ->
    maybe
        {ok, {Rules, Given}} ?= rules(Options),
        {Files, Monitors} = split_specs(Specs),
        {ok, Found} ?= witness_test_files:find(Files, maps:get(base, Rules)),
        Start = #{on_behalf => on_behalf(Given), log => false, system => System, specs => Found, monitors => Monitors},
        {ok, Run} ?= witness:start(maps:merge(Given, Start)),
        {ok, {Run, Rules#{redact => maps:get(redact, Given, false), scope => scope(System, Given), test => test(System)}}}
    else
        {error, Error} -> {error, witness_test_result:lines(witness:format_error(Error))}
    end.

%% Where it is possible, unless the user decides.
on_behalf(#{on_behalf := OnBehalf}) -> OnBehalf;
on_behalf(Given) -> maps:get(source, Given, native) =/= evm andalso maps:get(instrument, Given, outline) =/= inline.

%% The processes of the test that start others. That of a fun is not known yet.
test({children, Parents}) -> witness_instrument:parent_pids(Parents);
test(_) -> [].

%% Tests that run by themselves are watched with all that their supervisors start.
scope({children, _}, _) -> children;
scope(_, Given) -> maps:get(scope, Given, tree).

split_specs(Specs) when is_binary(Specs); is_tuple(Specs) -> split_specs([Specs]);
split_specs(Specs) ->
    case io_lib:char_list(Specs) andalso Specs =/= [] of
        true -> {[Specs], []};
        false -> lists:partition(fun(Spec) -> not is_tuple(Spec) end, Specs)
    end.

%% The test's own options, complete, and those of the run.
rules(Options) ->
    Defaults = witness_option:defaults(witness_option_schema:test()),
    Own = maps:with(maps:keys(Defaults), Options),
    maybe
        ok ?= witness_option:check(Own, witness_option_schema:test()),
        [] ?= [Name || Name <- [system, halt, specs, monitors, log], is_map_key(Name, Options)],
        {ok, {maps:merge(Defaults, Own), maps:without(maps:keys(Defaults), Options)}}
    else
        [Name | _] -> {error, {witness_option, {bad_option, Name, "nothing: a test has its own"}}};
        {error, _} = Error -> Error
    end.

%% The end of the run as a test's outcome, and how the system's first process has ended.
finish_run({Run, Rules}) ->
    maybe
        {ok, Running} ?= await_end(Rules, Run),
        {ok, Summary} ?= witness_run:finish(Run),
        Verdicts = witness:verdicts(Run),
        {ok, _} ?= witness:stop(Run),
        {Outcome, Warnings} =
            witness_test_result:judge(#{summary => Summary, verdicts => Verdicts, running => Running}, Rules),
        Unmonitored = [Text || #{code := nothing_monitored, text := Text} <- maps:get(warnings, Summary)],
        {Outcome, (maps:with([system, monitored], Summary))#{warnings => Warnings, unmonitored => Unmonitored}}
    else
        {error, Error} ->
            {{failed, no_result, witness_test_result:lines(witness:format_error(Error))},
             #{system => undefined, monitored => 0, warnings => [], unmonitored => []}}
    end.

await_end(#{wait := false}, _) -> {ok, []};
await_end(#{timeout := Timeout} = Rules, Run) ->
    case witness:await(Run, Timeout) of
        {ok, _} -> {ok, []};
        {error, {witness_run, timeout}} -> {ok, running(Rules, Run)};
        {error, _} = Error -> Error
    end.

running(#{redact := Redact, test := Test}, Run) ->
    Called = witness_run:called(Run),
    Show = case Redact of true -> fun witness_run_remaining:redact/1; false -> fun(Process) -> Process end end,
    [(Show(Process))#{origin => witness_run_remaining:origin(Process, Test, Called, Redact)}
     || P <- witness_run:awaited(Run), #{} = Process <- [witness_run_remaining:describe(P)]].

print_warnings(Warnings) -> io:put_chars([["witness: warning: ", Text, $\n] || Text <- Warnings]).

-doc false.
-spec print(outcome()) -> ok.
print(ok) -> ok;
print({failed, _, Lines}) -> io:put_chars([[Line, $\n] || Line <- Lines]).
