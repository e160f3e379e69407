-module(witness_task_init).
-moduledoc """
The task `init`: a first specification and a first test for a Mix project that depends on Witness. Both pass as they are written, and
are there to be changed. A file that is there already is never written over.
""".

-export([write/2]).

-doc """
Writes the files for an application into the current folder. Returns the lines for the user: what was written, and what to do next.
""".
-spec write(App :: binary(), [unicode:chardata()]) -> {ok, [unicode:chardata()]} | {error, unicode:chardata()}.
write(_, [Argument | _]) -> {error, [~"no argument is expected, not '", witness_text:clean(Argument), $']};
write(App, []) ->
    Spec = <<"specs/", App/binary, ".hml">>,
    {Test, Counter, Code} = test(App),
    Files = [{Spec, specification(Counter, Test)}, {Test, Code}],
    case [File || {File, _} <- Files, filelib:is_file(File)] of
        [] ->
            maybe
                ok ?= write_all(Files),
                {ok, [[~"* creating ", File] || {File, _} <- Files] ++ [~"" | next(Test)]}
            end;
        [File | _] ->
            {error, [File, ~" is there already, so nothing was written: go on with it, or rename it and try again"]}
    end.

write_all([]) -> ok;
write_all([{File, Text} | Files]) ->
    maybe
        ok ?= filelib:ensure_dir(File),
        ok ?= file:write_file(File, Text, [exclusive]),
        write_all(Files)
    else
        {error, Reason} -> {error, [File, ~": cannot be written: ", file:format_error(Reason)]}
    end.

specification(Counter, Test) ->
    [~"%% An example: no answer of the counter in ", Test, ~" is negative.\n",
     ~"%% Change both to what the processes of your project must do.\n\n",
     ~"no_answer_is_negative: with ", Counter, ~"(_)\n",
     ~"""
      over _ : _ ! reply(_, _)
      check max Ready.(
        [_ : _ ! reply(_, N) when N < 0] ff
        and [_ : _ ! reply(_, N) when N >= 0] Ready).

      """].

%% The name of the file, the function with which its counter starts, and the text.
test(App) ->
    Macro = 'Elixir.Macro',
    Name = Macro:camelize(App),
    {<<"test/", App/binary, "_witness_test.exs">>, [Name, ~".WitnessTest.Counter.init"], [
     ~"defmodule ", Name, ~".WitnessTest do\n  use ExUnit.Case, async: true\n  use Witness.Case, specs: [\"specs/", App,
     ~"""
      .hml"]

        defmodule Counter do
          use GenServer

          def start_link(n), do: GenServer.start_link(__MODULE__, n)

          @impl true
          def init(n), do: {:ok, n}

          @impl true
          def handle_call(:next, _from, n), do: {:reply, n, n + 1}
        end

        # Witness watches all processes that a test starts. With `n - 1` above, the assertions hold, and Witness
        # reports a violation.
        test "counts" do
          counter = start_supervised!({Counter, 0})
          assert GenServer.call(counter, :next) == 0
          assert is_integer(GenServer.call(counter, :next))
        end
      end

      """]}.

next(Test) ->
    Commands = [[[~"mix test ", Test], ~"the test passes; a comment in it says how it fails"],
                [~"mix witness.run", ~"runs the application, and finds crashes and deadlocks without a specification"],
                [~"mix help witness.run", ~"says more; mix help lists all tasks"]],
    [~"Next:"] ++ [[~"  ", Line] || Line <- witness_text:columns(Commands)]
        ++ [~"docs/specifications.md of Witness says how to write specifications, and docs/api.md what fails a test."].
