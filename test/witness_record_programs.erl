-module(witness_record_programs).
-moduledoc "The programs that are recorded in tests: those of `test/recorded`, and the benchmarks of Savina.".

-export([compile/1]).

-doc "Compiles them into a folder. One has no debug information, so that it cannot be woven.".
-spec compile(file:filename()) -> ok.
compile(Out) ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    lists:foreach(fun(File) ->
        Options = [debug_info || filename:basename(File) =/= "witness_recorded_relay.erl"],
        {ok, _} = compile:file(File, [return_errors, {outdir, Out} | Options])
    end, filelib:wildcard(filename:join([Root, "test", "recorded", "*.erl"]))
         ++ filelib:wildcard(filename:join([Root, "bench", "savina", "*.erl"]))).
