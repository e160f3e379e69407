-module(witness_monitor_alphabet).
-moduledoc """
Which events a monitor wants to read (`c:witness_monitor:alphabet/1`).

`all` are all events, but no calls and returns of functions: these are events only for monitors that name the functions.

The source need not deliver other events, but may, since other monitors of the run want them. A monitor that does not choose
by itself (`c:witness_monitor:slice/2`) is therefore given only what is in its alphabet. So what it sees never depends on
the monitors that run beside it.
""".

-export([of_monitor/1, kinds/1, functions/1, is_function_event/1, compile/1, slice/2]).
-export_type([alphabet/0, compiled/0]).

-type alphabet() :: all | [Kind :: atom() | {Kind :: atom(), ets:match_spec() | mfa()}].
-opaque compiled() :: all | #{Kind :: atom() => all | ets:compiled_match_spec() | #{mfa() => []}}.

-doc "The alphabet that the monitor returns; `all` if it returns none, or a malformed one: more events are never wrong.".
-spec of_monitor({module(), Arg :: term()}) -> alphabet().
of_monitor({Module, Arg}) ->
    try
        {module, Module} = code:ensure_loaded(Module),
        Alphabet = case erlang:function_exported(Module, alphabet, 1) of
            true -> Module:alphabet(Arg);
            false -> all
        end,
        _ = compile(Alphabet),
        Alphabet
    catch
        _:_ -> all
    end.

-doc "The kinds of events in a monitor's alphabet.".
-spec kinds({module(), Arg :: term()}) -> all | [witness_event:kind()].
kinds(Monitor) ->
    case of_monitor(Monitor) of
        all -> all;
        Alphabet -> [Kind || Kind <- [fork, init, exit, send, recv, call, return],
                     lists:any(fun({K, _}) -> K =:= Kind; (K) -> K =:= Kind end, Alphabet)]
    end.

-doc "The functions of which the monitor reads the calls or returns.".
-spec functions({module(), Arg :: term()}) -> [mfa()].
functions(Monitor) ->
    case of_monitor(Monitor) of
        all -> [];
        Alphabet -> lists:usort([Function || {Kind, Function} <- Alphabet, Kind =:= call orelse Kind =:= return])
    end.

-doc "Whether an event is the call or return of a function.".
-spec is_function_event(witness_event:item()) -> boolean().
is_function_event(E) -> element(1, E) =:= call orelse element(1, E) =:= return.

-doc "Prepares an alphabet for `slice/2`. Raises `badarg` for a malformed match specification, and for calls without a function.".
-spec compile(alphabet()) -> compiled().
compile(all) -> all;
compile(Alphabet) ->
    Whole = #{Kind => all || Kind <- Alphabet, is_atom(Kind)},
    _ = (is_map_key(call, Whole) orelse is_map_key(return, Whole)) andalso error(badarg),
    Parts = maps:groups_from_list(fun({Kind, _}) -> Kind end, fun({_, Spec}) -> Spec end,
                                  [Part || Part <- Alphabet, not is_atom(Part)]),
    maps:merge(#{Kind => parts(Kind, Specs) || Kind := Specs <- Parts}, Whole).

parts(Kind, Functions) when Kind =:= call; Kind =:= return -> maps:from_list([{named(Function), []} || Function <- Functions]);
parts(_, Specs) -> matching(lists:append(Specs)).

named({M, F, A} = Function) when is_atom(M), is_atom(F), is_integer(A), A >= 0 -> Function;
named(_) -> error(badarg).

matching(Spec) -> ets:match_spec_compile([{Head, Guards, [true]} || {Head, Guards, _} <- Spec]).

-doc "Whether the monitor wants this event, as in `c:witness_monitor:slice/2`.".
-spec slice(witness_event:event(), compiled()) -> all | skip.
slice(E, all) -> case is_function_event(E) of true -> skip; false -> all end;
slice(E, Compiled) ->
    case Compiled of
        #{element(1, E) := all} -> all;
        #{call := Functions} when element(1, E) =:= call -> one_of(called(element(3, E)), Functions);
        #{return := Functions} when element(1, E) =:= return -> one_of(element(3, E), Functions);
        #{element(1, E) := Spec} ->
            case ets:match_spec_run([data(E)], Spec) of
                [true] -> all;
                [] -> skip
            end;
        #{} -> skip
    end.

called({M, F, Arguments}) -> {M, F, length(Arguments)}.

one_of(Function, Functions) -> case Functions of #{Function := _} -> all; #{} -> skip end.

data({Kind, _, Other, Message, _}) when Kind =:= send; Kind =:= recv -> [Other, Message];
data({send, _, To, Message, _, _}) -> [To, Message];
data(E) -> tl(tuple_to_list(E)).
