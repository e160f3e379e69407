-module(witness_trace_functions).
-moduledoc """
The functions of which a run observes calls and returns: whether they can be observed, and whether they still are.

The VM reports the calls of a function at a *breakpoint* in its code. A session sets one for each function that its filter names
(`m:witness_trace_filter`). This has two limits:

- *Some calls never reach the function.* The compiler makes an instruction of `self()`, evaluates `atom_to_list(a)`, and drops
  `atom_to_list(X)` if its value is not used. Such functions are not *visible*.
- *New code has no breakpoints.* If the module is loaded anew, every session has lost its breakpoints in it, without any report.

So a run opens a *watch* before its sources. A watch has a breakpoint in each of the functions, and traces no process. If one of these
breakpoints is gone, all the others that were set before are gone, too.

```erlang
1> {ok, Watch} = witness_trace_functions:open([{ets, insert, 2}, {my_module, f, 1}]).
2> witness_trace_functions:replaced(Watch).
none
3> code:load_file(my_module).
4> witness_trace_functions:replaced(Watch).
{replaced,{my_module,f,1}}
```
""".

-export([open/1, none/0, replaced/1, close/1, is_visible/1, explain/1]).
-export_type([watch/0, refusal/0]).

-doc "The session with its breakpoints, and the functions; `none`: there are no functions. It ends when no process has it any more.".
-opaque watch() :: none | {trace:session(), [mfa()]}.

-doc """
Why a function cannot be observed: its module cannot be loaded, the module has no such function, or calls of the function are not all
visible.
""".
-type refusal() :: no_module | no_function | invisible.

-doc """
Loads the modules of the functions, and sets the breakpoints. Functions that a module does not export count, too. `{error, Refused}`
has all that cannot be observed, in the order of the list.
""".
-spec open([mfa()]) -> {ok, watch()} | {error, [{mfa(), refusal()}]}.
open([]) -> {ok, none};
open(Functions) ->
    Session = trace:session_create(?MODULE, self(), []),
    case [{Function, Why} || Function <- Functions, Why <- set(Session, Function)] of
        [] -> {ok, {Session, Functions}};
        Refused ->
            _ = trace:session_destroy(Session),
            {error, Refused}
    end.

-doc "The watch of no functions: none of them is ever replaced.".
-spec none() -> watch().
none() -> none.

set(Session, {M, _, _} = Function) ->
    case code:ensure_loaded(M) of
        {module, M} ->
            case trace:function(Session, Function, true, [local]) of
                0 -> [no_function];
                1 -> [invisible || not is_visible(Function)]
            end;
        {error, _} -> [no_module]
    end.

-doc "A refusal as text.".
-spec explain(refusal()) -> unicode:chardata().
explain(no_module) -> ~"there is no such module on the code path";
explain(no_function) -> ~"the module has no such function";
explain(invisible) -> ~"not all of them are calls in the code that the compiler makes (docs/specifications.md, calls and returns)".

-doc """
A function that has lost its breakpoint, since its module was loaded anew or deleted. It is never observed again, not even if the former
code comes back.
""".
-spec replaced(watch()) -> none | {replaced, mfa()}.
replaced(none) -> none;
replaced({Session, Functions}) ->
    case lists:search(fun(Function) -> trace:info(Session, Function, traced) =/= {traced, local} end, Functions) of
        {value, Function} -> {replaced, Function};
        false -> none
    end.

-doc "Takes the breakpoints away.".
-spec close(watch()) -> ok.
close(none) -> ok;
close({Session, _}) ->
    _ = trace:session_destroy(Session),
    ok.

%% --- what is visible ----------------------------------------------------------------

%% Calls of these are instructions of the VM, in at least one release from OTP 27 on.
-define(INSTRUCTIONS, [{erlang, '!', 2}, {erlang, apply, 2}, {erlang, apply, 3}, {erlang, call_on_load_function, 1},
                       {erlang, hibernate, 0}, {erlang, hibernate, 3}, {erlang, load_nif, 2}, {erlang, yield, 0},
                       {os, perf_counter, 0}]).

%% From OTP 29 on, the compiler makes an instruction of these inside `try'.
-define(IN_TRY, [{erlang, binary_to_existing_atom, 1}, {erlang, binary_to_existing_atom, 2}, {erlang, list_to_existing_atom, 1}]).

%% The compiler option `inline_list_funcs' makes loops of calls of these.
-define(INLINE_LIST_FUNCS, [{all, 2}, {any, 2}, {filter, 2}, {flatmap, 2}, {foldl, 3}, {foldr, 3}, {foreach, 2}, {map, 2},
                            {mapfoldl, 3}, {mapfoldr, 3}]).

-doc """
Whether every call of a function is reported, and every return. Not if

- the compiler may evaluate the call, drop it, or make an instruction of it: guard BIFs, operators, pure functions, `get/1`, `error/1`,
  all functions of `maps`;
- the compiler may put the code of the function in the place of a call: the module has been compiled with `inline`;
- Elixir puts a function of Erlang in its place: `Process.link/1` is `erlang:link/1`;
- Witness has a breakpoint of its own there.

`inline` that is written in a module of Erlang is found only if its object code is where it was loaded from, and has debug information.
""".
-spec is_visible(mfa()) -> boolean().
is_visible(Function) ->
    not (is_evaluated(Function) orelse is_ours(Function) orelse is_elixirs(Function) orelse is_inlined(Function)).

%% The compiler says itself what it may evaluate, and what it may drop. An exception is an instruction if its reason is known. Which
%% functions of `maps' become patterns, map expressions and guards differs between releases.
is_evaluated({M, F, A} = Function) ->
    lists:member(Function, ?INSTRUCTIONS ++ ?IN_TRY) orelse M =:= erlang andalso erl_internal:guard_bif(F, A) orelse M =:= maps
        orelse M =:= lists andalso lists:member({F, A}, ?INLINE_LIST_FUNCS)
        orelse is_known(Function).

%% What the compiler knows of functions of OTP. On a node without the compiler it may be any function of these modules.
is_known({M, F, A}) ->
    try erl_bifs:is_pure(M, F, A) orelse erl_bifs:is_safe(M, F, A) orelse erl_bifs:is_exit_bif(M, F, A)
    catch error:undef -> lists:member(M, [binary, erlang, error_logger, lists, math, string, unicode])
    end.

is_ours({erlang, process_flag, 2}) -> true;
is_ours({gen_server, handle_msg, _}) -> true;
is_ours(_) -> false.

is_elixirs({M, F, A}) ->
    case code:ensure_loaded(elixir_rewrite) of
        {module, Rewrite} -> erlang:function_exported(Rewrite, inline, 3) andalso Rewrite:inline(M, F, A) =/= false;
        {error, _} -> false
    end.

is_inlined({M, F, A}) ->
    case code:ensure_loaded(M) of
        {module, M} ->
            Given = proplists:get_value(options, M:module_info(compile), []),
            lists:any(fun(Option) -> inlines(Option, {F, A}) end, Given ++ options_in_source(M));
        {error, _} -> false
    end.

inlines(inline, _) -> true;
inlines({inline, Some}, Function) -> lists:member(Function, lists:flatten([Some]));
inlines(_, _) -> false.

options_in_source(M) ->
    maybe
        {M, Beam, _} ?= code:get_object_code(M),
        {ok, {M, [{debug_info, {debug_info_v1, erl_abstract_code, {Forms, _}}}]}} ?= beam_lib:chunks(Beam, [debug_info]),
        true ?= is_list(Forms),
        lists:flatten([Options || {attribute, _, compile, Options} <- Forms])
    else
        _ -> []
    end.
