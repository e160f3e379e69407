-module(witness_record_programs).
-moduledoc "The programs that are recorded in tests: those of `test/recorded`, and the benchmarks of Savina.".

-export([compile/1, unwoven/1]).

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

root() -> witness_checkout:root(filename:dirname(code:which(?MODULE))).

-doc "The folder of those that have no debug information, so that they cannot be woven.".
-spec unwoven(file:filename()) -> file:filename().
unwoven(Out) -> filename:join(Out, "unwoven").
