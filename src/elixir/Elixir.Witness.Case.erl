-module('Elixir.Witness.Case').
-moduledoc """
Monitors in the tests of ExUnit.

```elixir
defmodule CounterTest do
  use ExUnit.Case, async: true
  use Witness.Case, specs: ["specs/counter.hml"]

  test "counts" do
    counter = start_supervised!(Counter)
    assert Counter.increment(counter) == 1
  end
end
```

Each test of the module runs under observation: everything that its process starts, directly or not, also with
`start_supervised`, also in a later `setup`. The run waits until the test and what ExUnit has started for it have ended,
and then for the remaining processes. If a specification was violated, the test fails with the explanation:

```
  1) test counts (CounterTest)
     test/counter_test.exs:5
     VIOLATION of counts_rise (specs/counter.hml:3)
       by <0.214.0>, 'Elixir.Counter':init([])
     ...
```

Tests may be `async`: each observes its own process, those that it has started, and what processes that run already start on its
behalf. A process does so while it handles a call of an observed process: so a test observes what it has
`DynamicSupervisor`, `Task.Supervisor`, `PartitionSupervisor` or a `GenServer` of the application start, also through several of them and
in a task, and what a supervisor starts in the place of such a process. Each test has its own, however many run at the same time. The
test does not wait for these processes. `allow/1` names a process that starts something for the test without a call, such as one
that gets a message. What runs before the test is not observed itself, such as the processes of the application and of `setup_all`.
This needs the source `native` (`m:witness`); over `evm`, and inline, a test observes what it has started itself. With
`on_behalf: false` it always does.

With `scope: :node` a test observes every process that starts while it runs. It should not be `async` then.

The process of a test has the signature `ShopTest."test sells"(_)`, in a specification `ShopTest.'test sells'(_)`.

## Options

`specs`, a list of files and of monitors `{{module, function, arity}, {monitor, arg}}`, by default the files that
`config :witness, specs: [...]` names, and the options of
`m:witness_test`, such as `timeout: 5_000`, `wait: false`, `unmonitored: :fail`. A relative file is looked for in the
current folder, then in that of the test's file and in each above. `async` is passed to `ExUnit.Case`, for modules
without `use ExUnit.Case` of their own. With `instrument: :inline` tests must not be `async`, since only one run at a time can weave
a module. Checks that a run has only of a system that it starts, `crashes` and `restarts`, are refused: `check/3` has them. Of `leaks` there is
only what grows: a process that is still there at the end of a test is one for `check/3`.

A tag changes them for one test, or for the tests of a `describe`: `@tag witness: [specs: ["specs/other.hml"]]` or
shorter `@tag witness: "specs/other.hml"`; with `@tag witness: false` a test is not observed.

A test may start no process that the specifications are for. If no test of a module has started one, a warning says so after all tests.
With `unmonitored: :fail` each such test fails. Warnings come after all tests, each once, with the tests that it is about.

## Searching

`@tag witness_search: 200` runs a test by 200 schedules, each of which decides which process goes on next, and fails the test if it fails in
one of them, or violates a specification (`m:witness_search`). A keyword list has other options: `@tag witness_search: [schedules: 200, seed: 7]`.
The test runs in a VM of its own, with `setup_all`, `setup`, `start_supervised` and `on_exit`. Processes of the application, and other modules that
are defined in files of tests, are not there. With `@tag witness_search: false` a test of a module with such a tag is none.

## A part of a test

`Witness.Case.check("specs/counter.hml", fn -> ... end, timeout: 1_000)` observes the processes that a function
starts, and returns what the function returns. The function runs in a process of its own, see `m:witness_test`: there
`start_supervised` and `on_exit` raise, because they work only in the process of the test.

## Errors

Every problem is an `ExUnit.AssertionError`, with the text of `m:witness_test`. If the test itself has failed, ExUnit
reports only that.
""".

%% Written in Erlang, so that a project of Elixir needs only the application that rebar3 has built. Modules of Elixir are
%% called through a variable: they are no dependency of Witness.
-export(['MACRO-__using__'/2, 'MACRO-__before_compile__'/2, '__keep__'/2, '__count__'/1, '__watch__'/1, '__search__'/1]).
-export([allow/1, allow/2, check/2, check/3]).

-include("witness_elixir.hrl").

-define(EXUNIT_CASE, 'Elixir.ExUnit.Case').
%% The watch of a test, in the dictionary of its process.
-define(WATCH, '$witness_watch').
%% The warnings of tests, each with its tests: in the environment of the application, as ExUnit keeps what is done after all tests.
-define(WARNINGS, case_warnings).
%% Places of the counters: tests, and those of them in which something was monitored.
-define(WATCHED, 1).
-define(MONITORED, 2).
%% Likewise, for each module, which signatures there were instead.
-define(SEEN, case_seen).
%% Likewise, the code of modules with tests that are searched.
-define(CODE, case_code).
%% Properties that are named.
-define(MAX_SEEN, 3).

%% quote do
%%   use ExUnit.Case, ...                  # unless the module already does
%%   @moduletag witness_case: options
%%   defp witness_count(...), defp witness_watch(...)
%%   ExUnit.Callbacks.setup_all(:witness_count)
%%   ExUnit.Callbacks.setup(:witness_watch)
%%   @before_compile Witness.Case
%% end
-doc false.
'MACRO-__using__'(Caller, Options) ->
    Environment = elixir_env,
    #{module := Module} = Environment:to_caller(Caller),
    {Async, Others} = split_async(Options),
    Modules = 'Elixir.Module',
    Use = [{use, [{context, ?MODULE}, {imports, [{1, 'Elixir.Kernel'}, {2, 'Elixir.Kernel'}]}], [?EXUNIT_CASE, Async]}
           || not Modules:'has_attribute?'(Module, ex_unit_tests)],
    Tag = attribute(moduletag, [{witness_case, Others}]),
    Setups = [{{'.', [], ['Elixir.ExUnit.Callbacks', Callback]}, [], [Function]}
              || {Callback, Function} <- [{setup_all, witness_count}, {setup, witness_watch}]],
    %% A template of test cases and its module may both use it.
    Functions = [functions() || not Modules:'defines?'(Module, {witness_watch, 1})],
    {'__block__', [], Use ++ [Tag | Functions] ++ Setups ++ [attribute(before_compile, ?MODULE)]}.

%% In a search a test does without this module: what it does there could not be replayed.
functions() ->
    Code = 'Elixir.Code',
    Code:'string_to_quoted!'(~"""
        defp witness_count(%{witness_inside: true}), do: :ok
        defp witness_count(context), do: Witness.Case.__count__(context)
        defp witness_watch(%{witness_inside: true}), do: :ok
        defp witness_watch(context), do: Witness.Case.__watch__(context)
        """).

attribute(Name, Value) -> kernel('@', [{Name, [{context, ?MODULE}], [Value]}]).

kernel(Macro, Args) -> {Macro, [{context, ?MODULE}, {imports, [{length(Args), 'Elixir.Kernel'}]}], Args}.

%% A test with the tag `witness_search' becomes
%%
%%   defoverridable ["test name": 1]
%%   def unquote(:"test name")(context), do: witness_searched(context, fn context -> super(context) end)
%%
%% and the module has the code that runs it in a search. That is compiled with the module, so that it is controlled like the test.
-doc false.
'MACRO-__before_compile__'(_, #{module := Module}) ->
    Modules = 'Elixir.Module',
    Tests = Modules:get_attribute(Module, ex_unit_tests),
    case [Name || #{name := Name, tags := #{witness_search := Tag}} <- Tests, Tag =/= false] of
        [] -> nil;
        Names ->
            {'__block__', [], [attribute(compile, {debug_info, true}), attribute(after_compile, {?MODULE, '__keep__'}), searched()
                               | lists:append([overridden(Name) || Name <- Names])]}
    end.

overridden(Name) ->
    Var = {context, [], ?MODULE},
    Super = {fn, [], [{'->', [], [[Var], {super, [], [Var]}]}]},
    [kernel(defoverridable, [[{Name, 1}]]),
     kernel(def, [{Name, [], [Var]}, [{do, {witness_searched, [], [Var, Super]}}]])].

%% As ExUnit runs a test: the callbacks of `on_exit' are called when its process has ended. Everything that they need is started
%% inside, and ends with the run.
searched() ->
    Code = 'Elixir.Code',
    Code:'string_to_quoted!'(~"""
        defp witness_searched(%{witness_inside: true, test: name} = given, body) do
          module = __MODULE__.__ex_unit__()
          %{tags: tags} = Enum.find(module.tests, &(&1.name == name))
          test = self()
          begun = make_ref()

          spawn(fn ->
            for table <- [ExUnit.Server, ExUnit.OnExitHandler], do: :ets.new(table, [:named_table, :public])
            ended = Process.monitor(test)
            send(test, begun)
            receive do: ({:DOWN, ^ended, _, _, _} -> :ok)

            case ExUnit.OnExitHandler.run(test, :infinity) do
              :ok -> :ok
              {kind, reason, stack} when is_atom(kind) -> :erlang.raise(kind, reason, stack)
              {_, reason, _} -> exit(reason)
            end
          end)

          receive do: (^begun -> :ok)
          ExUnit.OnExitHandler.register(test)
          start = module |> Map.get(:tags, %{}) |> Map.merge(given) |> Map.merge(%{module: __MODULE__, async: false})
          all = __MODULE__.__ex_unit__(:setup_all, start) |> Map.merge(tags) |> Map.merge(given) |> Map.put(:test_pid, test)
          body.(__MODULE__.__ex_unit__(:setup, all))
          exit(:shutdown)
        end

        defp witness_searched(context, _body), do: Witness.Case.__search__(context)
        """).

%% The code of a module of tests is in no file. The search gets it from here.
-doc false.
'__keep__'(#{module := Module}, Beam) ->
    locked(fun() -> application:set_env(witness, ?CODE, (application:get_env(witness, ?CODE, #{}))#{Module => Beam}) end).

split_async(Options) when is_list(Options) ->
    lists:partition(fun(Option) -> is_tuple(Option) andalso element(1, Option) =:= async end, Options);
split_async(Options) -> {[], Options}.

%% ExUnit calls it once for each module. How many tests were watched, and in how many of them something was monitored, is known when
%% all tests have ended.
-doc false.
'__count__'(#{module := Module}) ->
    Counts = counters:new(2, []),
    after_suite(fun() -> nothing_monitored(counters:get(Counts, ?WATCHED), counters:get(Counts, ?MONITORED), Module) end),
    {ok, [{witness_counts, Counts}]}.

nothing_monitored(Watched, 0, Module) when Watched > 0 ->
    warn(Module, [~"nothing was monitored in ", witness_text:count(Watched, ~"test", ~"tests"),
                  ~": no process that a test has started, with start_supervised or itself, is one that the specifications are for",
                  [[~"; ", Text] || Text <- lists:sublist(seen(Module), ?MAX_SEEN)]]),
    forget_seen(Module);
nothing_monitored(_, _, Module) -> forget_seen(Module).

%% What the properties of the first test have missed. Only a module without any monitored test shows it.
keep_seen([], _, _) -> ok;
keep_seen(Texts, Counts, Module) ->
    counters:get(Counts, ?MONITORED) =:= 0 andalso seen(Module) =:= [] andalso
        locked(fun() -> application:set_env(witness, ?SEEN, (all_seen())#{Module => Texts}) end),
    ok.

seen(Module) -> maps:get(Module, all_seen(), []).

all_seen() -> application:get_env(witness, ?SEEN, #{}).

forget_seen(Module) -> application:set_env(witness, ?SEEN, maps:remove(Module, all_seen())).

warn(Of, Text) -> io:put_chars([~"witness: warning: ", witness_text:name(Of, 200), ~": ", Text, $\n]).

%% What is printed while tests run would be between their dots. What several tests warn of is said once.
warn_after_suite(_, []) -> ok;
warn_after_suite(Test, Warnings) ->
    locked(fun() ->
        Known = application:get_env(witness, ?WARNINGS, #{}),
        Known =:= #{} andalso add_after_suite(fun say_warnings/0),
        Add = fun(Text, All) -> All#{Text => [Test | maps:get(Text, All, [])]} end,
        application:set_env(witness, ?WARNINGS, lists:foldl(Add, Known, Warnings))
    end).

say_warnings() ->
    Known = application:get_env(witness, ?WARNINGS, #{}),
    ok = application:unset_env(witness, ?WARNINGS),
    [begin
         [{Module, Name} | Others] = lists:sort(Tests),
         warn(Module, [atom_to_binary(Name),
                       [[~" and ", witness_text:count(length(Others), ~"other test", ~"other tests")] || Others =/= []], ~": ", Text])
     end || Text := Tests <- maps:iterator(Known, ordered)],
    ok.

after_suite(Say) -> locked(fun() -> add_after_suite(Say) end).

add_after_suite(Say) ->
    ExUnit = 'Elixir.ExUnit',
    ExUnit:after_suite(fun(_) -> Say() end).

%% Tests that run at the same time must not lose what another one has added.
locked(Fun) ->
    ok = global:trans({?MODULE, self()}, Fun, [node()]).

%% ExUnit calls it in the process of the test. The parent of that process lives as long as the module's tests, and owns the run.
-doc false.
'__watch__'(#{witness_search := Tag}) when Tag =/= false -> ok;
'__watch__'(#{module := Module, test := Test, file := File, line := Line} = Context) ->
    #{witness_case := Default, witness_counts := Counts} = Context,
    case options(maps:get(witness, Context, []), Default) of
        none -> ok;
        Options ->
            ExUnit = 'Elixir.ExUnit',
            Callbacks = 'Elixir.ExUnit.Callbacks',
            {ok, Supervisor} = ExUnit:fetch_test_supervisor(),
            {parent, Owner} = process_info(self(), parent),
            Given = #{base => filename:dirname(File), owner => Owner},
            {Specs, Others} = split_specs(maps:merge(Given#{unmonitored => ignore}, Options)),
            %% A module may have tests that are only searched.
            Counted = not is_map_key(unmonitored, Options) andalso (Specs =/= [] orelse is_map_key(checks, Options)),
            ok = label(Module, Test),
            Place = [{Module, Test, 1, [{file, relative(File)}, {line, Line}]}],
            case witness_test:watch(Specs, [{self(), {Module, Test, ['_']}}, Supervisor], Others) of
                {ok, Watch} ->
                    put(?WATCH, Watch),
                    Callbacks:on_exit(fun() ->
                        {Outcome, Found} = witness_test:finish(Watch),
                        #{monitored := Monitored, warnings := Warnings, unmonitored := Seen} = Found,
                        ok = keep_seen([Text || Text <- Seen, Counted], Counts, Module),
                        [counters:add(Counts, Of, 1) || Counted, {Of, true} <- [{?WATCHED, true}, {?MONITORED, Monitored > 0}]],
                        warn_after_suite({Module, Test}, Warnings),
                        assert(Outcome, Place)
                    end),
                    ok;
                {error, Lines} -> erlang:raise(error, failure(Lines), Place)
            end
    end.

%% In the place of the body of a test with the tag `witness_search'.
-doc false.
'__search__'(#{module := Module, test := Test, file := File, line := Line} = Context) ->
    #{witness_search := Tag, witness_case := Default} = Context,
    Specs = case options(maps:get(witness, Context, []), Default) of
        none -> [];
        Options -> element(1, split_specs(Options))
    end,
    Given = case Tag of
        Schedules when is_integer(Schedules) -> #{schedules => Schedules};
        _ -> to_map(Tag)
    end,
    %% What ExUnit adds to the context itself, besides the tags.
    Parameters = lists:append([maps:keys(One) || One <- parameters(Module)]),
    Inside = (maps:with([tmp_dir | Parameters], Context))#{witness_inside => true, test => Test},
    Place = [{Module, Test, 1, [{file, relative(File)}, {line, Line}]}],
    is_map_key(expect, Given) andalso
        erlang:raise(error, failure([~"witness_search: a test returns nothing that can be expected: use assert"]), Place),
    Code = #{modules => maps:with([Module], application:get_env(witness, ?CODE, #{})), applications => [ex_unit],
             tool => case code:is_loaded('Elixir.Mix.Project') of false -> witness; _ -> mix end},
    {Outcome, Warnings} =
        witness_test_search:search(maps:get(specs, Given, Specs), {Module, Test, [Inside]},
                                   maps:merge(#{base => filename:dirname(File), unmonitored => warn}, maps:remove(specs, Given)),
                                   Code),
    warn_after_suite({Module, Test}, Warnings),
    assert(Outcome, Place).

%% Since Elixir 1.18, first in a tuple.
parameters(Module) ->
    try Module:'__ex_unit__'(config) of
        #{parameterize := [_ | _] = Parameters} -> Parameters;
        Config when is_tuple(Config) -> [One || List <- tuple_to_list(Config), is_list(List), One <- List, is_map(One)];
        _ -> []
    catch
        error:_ -> []
    end.

%% As ExUnit does since Elixir 1.18, so that charts show which process is that of the test.
label(Module, Test) ->
    proc_lib:get_label(self()) =:= undefined andalso proc_lib:set_label({Module, Test}),
    ok.

relative(File) ->
    Path = 'Elixir.Path',
    unicode:characters_to_list(Path:relative_to_cwd(File)).

options(false, _) -> none;
options(Tag, Default) -> maps:merge(to_map(Default), to_map(Tag)).

%% Options, or an abbreviation of `specs'.
to_map(true) -> #{};
to_map(Options) when is_map(Options) -> Options;
to_map(Options) when is_list(Options) ->
    case lists:all(fun({Key, _}) -> is_atom(Key); (_) -> false end, Options) of
        true -> maps:from_list(Options);
        false -> #{specs => Options}
    end;
to_map(Spec) -> #{specs => Spec}.

split_specs(Options) -> {maps:get(specs, Options, application:get_env(witness, specs, [])), maps:remove(specs, Options)}.

-doc "`allow/2` for the test that calls.".
-spec allow(pid() | atom() | tuple()) -> ok.
allow(Process) -> allow(Process, self()).

-doc """
From now on a test observes what a process starts that ran before: a process that starts something for the test without being called by
it. `Process` is a pid or a name, as for `GenServer.whereis/1`; `Test` is the process of the test.
""".
-spec allow(pid() | atom() | tuple(), Test :: pid()) -> ok.
allow(Process, Test) ->
    GenServer = 'Elixir.GenServer',
    case GenServer:whereis(Process) of
        Pid when is_pid(Pid), node(Pid) =:= node() -> allow_process(Pid, Test);
        _ -> fail([["Witness.Case.allow: there is no process ", inspect(Process), " on this node"]])
    end.

allow_process(Pid, Test) ->
    case process_info(Test, {dictionary, ?WATCH}) of
        {_, Watch} when Watch =/= undefined ->
            case witness_test:allow(Watch, Pid) of
                ok -> ok;
                {error, Lines} -> fail(Lines)
            end;
        _ -> fail([["Witness.Case.allow: ", inspect(Test), " is not the process of a test that is observed"]])
    end.

inspect(Term) ->
    Kernel = 'Elixir.Kernel',
    Kernel:inspect(Term).

-doc "`check/3` without options.".
-spec check(witness_test:specs(), fun(() -> Result)) -> Result.
check(Specs, Fun) -> check(Specs, Fun, []).

-doc "Runs the function under observation, and returns what it returns.".
-spec check(witness_test:specs(), fun(() -> Result), [{atom(), term()}] | map()) -> Result.
check(Specs, Fun, Options) ->
    case witness_test:observe(Specs, Fun, to_map(Options)) of
        {{raised, Class, Reason, Stack}, Outcome} ->
            witness_test:print(Outcome),
            erlang:raise(Class, Reason, Stack);
        {Returned, Outcome} ->
            assert(Outcome, callers()),
            {returned, Result} = Returned,
            Result
    end.

callers() ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    [Frame || {Module, _, _, _} = Frame <- Stack, Module =/= ?MODULE, Module =/= erlang].

%% A verdict has no place in the code that runs: its place is the test.
assert(ok, _) -> ok;
assert({failed, _, Lines}, Stack) -> erlang:raise(error, failure(Lines), Stack).

-spec fail([unicode:chardata()]) -> no_return().
fail(Lines) -> error(failure(Lines)).

failure(Lines) ->
    Error = 'Elixir.ExUnit.AssertionError',
    Error:exception([{message, unicode:characters_to_binary(lists:join("\n", Lines))}]).
