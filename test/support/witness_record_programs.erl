-module(witness_record_programs).
-moduledoc "The programs that are recorded in tests: those of `test/recorded`, and the benchmarks of Savina.".

-export([compile/1, compile/2, compile_noting/1, compile_elixir/1, compile_elixir/2, unwoven/1]).

-doc "Compiles them into a folder.".
-spec compile(file:filename()) -> ok.
compile(Out) ->
    ok = filelib:ensure_path(unwoven(Out)),
    lists:foreach(fun(File) ->
        Options = case filename:basename(File) of
            "witness_recorded_relay.erl" -> [{outdir, unwoven(Out)}];
            _ -> [{outdir, Out}, debug_info]
        end,
        {ok, _} = compile:file(File, [return_errors | Options])
    end, [File || Folder <- ["test/recorded", "bench/savina"],
                  File <- filelib:wildcard(filename:join([root(), Folder, "*.erl"]))]).

-doc "Compiles these programs of `test/recorded` into a folder.".
-spec compile([string()], file:filename()) -> ok.
compile(Names, Out) ->
    ok = filelib:ensure_path(Out),
    lists:foreach(fun(Name) ->
        {ok, _} = compile:file(filename:join([root(), "test", "recorded", Name]), [return_errors, {outdir, Out}, debug_info])
    end, Names).

-doc "Compiles the benchmarks such that their processes note what they do (`witness_record_noting`).".
-spec compile_noting(file:filename()) -> ok.
compile_noting(Out) ->
    ok = filelib:ensure_path(Out),
    ok = witness_record_noting:otp(Out),
    Compiled = fun(Pattern, Options) ->
        [{ok, _} = compile:file(File, [return_errors, debug_info, {outdir, Out} | Options])
         || File <- filelib:wildcard(filename:join(root(), Pattern))]
    end,
    _ = Compiled("bench/savina/*.erl", [{parse_transform, witness_record_noting}]),
    _ = Compiled("test/recorded/witness_recorded{,_ends}.erl", []),
    ok.

-doc "Compiles those in Elixir.".
-spec compile_elixir(file:filename()) -> ok.
compile_elixir(Out) -> compile_elixir("test/recorded/recorded.ex", Out).

-doc "Compiles a file of this repository, in Elixir.".
-spec compile_elixir(file:filename(), Out :: file:filename()) -> ok.
compile_elixir(File, Out) ->
    ok = filelib:ensure_path(Out),
    Port = open_port({spawn_executable, os:find_executable("elixirc")},
                     [{args, ["-o", Out, filename:join(root(), File)]},
                      exit_status, stderr_to_stdout, binary]),
    compiled(Port, []).

compiled(Port, Printed) ->
    receive
        {Port, {data, Data}} -> compiled(Port, [Printed, Data]);
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, _}} -> error({elixirc, iolist_to_binary(Printed)})
    end.

root() -> witness_checkout:root(filename:dirname(code:which(?MODULE))).

-doc "The folder of those that have no debug information, so that they cannot be woven.".
-spec unwoven(file:filename()) -> file:filename().
unwoven(Out) -> filename:join(Out, "unwoven").
