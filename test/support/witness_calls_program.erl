-module(witness_calls_program).
-moduledoc """
Writes a program that makes each call of a table, for tests of what woven calls do: `rows/0`, and for each row, by its place,
functions that call it in a different way each. `m:witness_recorded_calls` runs it.
""".

-export([write/3, is_there/1]).

-doc "Writes and compiles the module into a folder.".
-spec write(module(), [mfa()], file:filename()) -> ok.
write(Module, MFAs, Out) ->
    Rows = lists:enumerate(MFAs),
    Functions = [
        ["rows() -> ", io_lib:format("~w", [Rows]), ".\n"],
        by_row(Rows, "direct(~w, [~ts]) -> {value, ~ts}", fun call/2),
        by_row(Rows, "tail(~w, [~ts]) -> {value, ~ts}", fun(I, {_, _, A}) -> io_lib:format("tail_~w(~ts)", [I, vars(A)]) end),
        by_row(Rows, "called(~w, [~ts]) -> ~ts",
               fun(_, {M, F, A}) -> io_lib:format("F = fun ~w:~w/~w, {value, F(~ts)}", [M, F, A, vars(A)]) end),
        by_row(Rows, "caught(~w, [~ts]) -> ~ts", fun(I, MFA) ->
            ["try ", call(I, MFA), " of V -> {value, V} catch C:R:S -> {raised, C, R, S} end"]
        end),
        by_row(Rows, "applied(~w, [~ts] = Args) -> _ = Args, ~ts",
               fun(_, {M, F, _}) -> io_lib:format("{value, apply(~w, ~w, Args)}", [M, F]) end),
        lists:join(";\n", [io_lib:format("function(~w) -> fun ~w:~w/~w", [I, M, F, A]) || {I, {M, F, A}} <- Rows]), ".\n",
        [io_lib:format("tail_~w(~ts) -> ~ts.\n", [I, vars(A), call(I, MFA)]) || {I, {_, _, A} = MFA} <- Rows]],
    File = filename:join(Out, atom_to_list(Module) ++ ".erl"),
    Head = io_lib:format("-module(~w).\n-export([rows/0, direct/2, tail/2, called/2, caught/2, applied/2, function/1]).\n",
                         [Module]),
    ok = file:write_file(File, [Head | Functions]),
    {ok, Module} = compile:file(File, [debug_info, {outdir, Out}, return_errors]),
    ok.

by_row(Rows, Format, Body) ->
    [lists:join(";\n", [io_lib:format(Format, [I, vars(A), Body(I, MFA)]) || {I, {_, _, A} = MFA} <- Rows]), ".\n"].

call(_, {M, F, A}) -> io_lib:format("~w:~w(~ts)", [M, F, vars(A)]).

vars(Arity) -> lists:join(", ", ["A" ++ integer_to_list(N) || N <- lists:seq(1, Arity)]).

-doc "Whether this OTP, or the Elixir that is there, has the function.".
-spec is_there(mfa()) -> boolean().
is_there({M, F, A}) ->
    _ = code:ensure_loaded(M),
    erlang:function_exported(M, F, A) orelse erlang:is_builtin(M, F, A).
