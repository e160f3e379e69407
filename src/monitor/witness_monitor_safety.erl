-module(witness_monitor_safety).
-moduledoc """
Whether a monitor may share a process with others: by its code, each step ends after a bounded time, and only
computes.

A monitor could harm the others in its process: it could keep the process busy, wait, end the process, or take messages
or entries of the process dictionary that are not its own. It could also cause these by a signal. None of this is possible in code

- that does not call itself, directly or indirectly, so that it has no loop;
- that sends nothing, receives nothing and makes and calls no funs;
- that calls other modules only for functions that take bounded time. Time linear in the size of a message or of
  the state is bounded: messages are bounded where events are gathered, and the process that runs the monitor checks the size
  of its state. One function has an effect, which only a reader of the counter sees: `counters:add/3`.

The check reads the object code. It must be the loaded code. If the code of a monitor is not known (it was compiled
for coverage, say, or loaded from memory), the monitor is not bounded. Compiled specifications are bounded: a state is a
function clause, their formulas are unfolded at most once a step, and obligations are limited (`max_obligations`).

```erlang
1> witness_monitor_safety:is_bounded(no_crash).
true
```
""".

-export([is_bounded/1, only_computes/1, computes_anywhere/1]).

-doc "Whether the callbacks of a module are bounded.".
-spec is_bounded(module()) -> boolean().
is_bounded(Module) -> is_without([unbounded], Module).

-doc "Whether they also have no effect at all, so that a repeated step cannot be noticed.".
-spec only_computes(module()) -> boolean().
only_computes(Module) -> is_without([unbounded, effect], Module).

-doc "Whether they also do the same in each process: they do not call `self/0`.".
-spec computes_anywhere(module()) -> boolean().
computes_anywhere(Module) -> is_without([unbounded, effect, self], Module).

is_without(Refused, Module) ->
    maybe
        {Module, Code, _} ?= code:get_object_code(Module),
        {ok, {Module, Sum}} ?= beam_lib:md5(Code),
        true ?= Sum =:= Module:module_info(md5),
        {beam_file, Module, _, _, _, Functions} ?= disassemble(Code),
        Named = #{{F, A} => Ops || {function, F, A, _, Ops} <- Functions},
        are_all_without(Refused, [FA || FA <- callbacks(), is_map_key(FA, Named)], [], Module, Named)
    else
        _ -> false
    end.

%% A node that Witness attaches to may lack the compiler.
disassemble(Code) ->
    try beam_disasm:file(Code)
    catch error:undef -> unknown
    end.

callbacks() ->
    [{init, 3}, {attached, 3}, {handle_event, 2}, {handle_end, 2}, {slice, 2}, {instance, 2}, {slice_names, 1},
     {alphabet, 1}, {coverage, 1}, {describe, 1}].

%% Depth first; `Above' are the callers. A function with many callers is checked once for each, which is cheap because the code
%% of a monitor is small.
are_all_without(Refused, FAs, Above, Module, Named) ->
    lists:all(fun(FA) -> not lists:member(FA, Above) andalso is_function_without(Refused, FA, [FA | Above], Module, Named) end,
              FAs).

is_function_without(Refused, FA, Above, Module, Named) ->
    #{FA := Ops} = Named,
    Calls = [op(Op) || Op <- Ops],
    not lists:any(fun(Call) -> lists:member(Call, Refused) end, Calls)
        andalso are_all_without(Refused, lists:usort([{F, A} || {M, F, A} <- Calls, M =:= Module]), Above, Module, Named).

%% The kind of an operation: a call in the same module, `bounded', `unbounded', `self', or `effect': bounded, but with an effect.
op(Op) when is_atom(Op) -> name(Op);
op({call, _, MFA}) -> MFA;
op({call_only, _, MFA}) -> MFA;
op({call_last, _, MFA, _}) -> MFA;
op({call_ext, _, Called}) -> external(Called);
op({call_ext_only, _, Called}) -> external(Called);
op({call_ext_last, _, Called, _}) -> external(Called);
op({bif, Name, _, _, _}) -> bif(Name);
op({gc_bif, Name, _, _, _, _}) -> bif(Name);
op(Op) -> name(element(1, Op)).

external({extfunc, erlang, self, 0}) -> self;
external({extfunc, erlang, F, A}) -> bounded_if(lists:member({F, A}, erlang_functions()) orelse erl_internal:guard_bif(F, A));
external({extfunc, counters, add, 3}) -> effect;
external({extfunc, M, F, A}) -> bounded_if(lists:member({M, F, A}, linear_functions())).

erlang_functions() -> [{phash2, 1}, {phash2, 2}, {setelement, 3}, {'=:=', 2}, {error, 1}, {error, 2}, {exit, 1}, {throw, 1},
                       {raise, 3}].

linear_functions() ->
    [{maps, get, 2}, {maps, get, 3}, {maps, find, 2}, {maps, is_key, 2}, {maps, new, 0}, {maps, put, 3}, {maps, remove, 2},
     {maps, size, 1}, {maps, take, 2}, {maps, update, 3}, {maps, values, 1},
     {lists, keyfind, 3}, {lists, keymember, 3}, {lists, member, 2}, {lists, reverse, 1}].

%% `bsl' may make numbers of any size. The process dictionary is not the monitor's own.
bif(self) -> self;
bif(Name) -> bounded_if(not lists:member(Name, ['bsl', get])).

bounded_if(true) -> bounded;
bounded_if(false) -> unbounded.

%% Tests, moves, construction of terms except binaries, which may have any size, and jumps, which only go forward.
name(Name) ->
    bounded_if(lists:member(Name, [label, line, func_info, test, move, swap, jump, select_val, select_tuple_arity, return, allocate,
                                   allocate_heap, allocate_zero, allocate_heap_zero, deallocate, trim, test_heap, init, init_yregs,
                                   kill, get_tuple_element, set_tuple_element, put_tuple2, put_tuple, put, update_record, get_list,
                                   get_hd, get_tl, put_list, put_map_assoc, put_map_exact, get_map_elements, 'try', try_end,
                                   try_case, try_case_end, 'catch', catch_end, raw_raise, build_stacktrace, badmatch, case_end,
                                   if_end, badrecord, int_code_end, executable_line, debug_line, nif_start, bs_start_match4,
                                   bs_start_match3, bs_match, bs_get_tail, bs_get_position, bs_set_position, bs_get_integer2,
                                   bs_get_binary2, bs_get_float2])).
