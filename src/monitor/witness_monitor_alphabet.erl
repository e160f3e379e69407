-module(witness_monitor_alphabet).
-moduledoc """
Which events a monitor wants to read (`c:witness_monitor:alphabet/1`).

The source need not deliver other events, but may, since other monitors of the run want them. A monitor that does not choose
by itself (`c:witness_monitor:slice/2`) is therefore given only what is in its alphabet. So what it sees never depends on
the monitors that run beside it.
""".

-export([of_monitor/1, kinds/1, compile/1, slice/2]).
-export_type([alphabet/0, compiled/0]).

-type alphabet() :: all | [Kind :: atom() | {Kind :: atom(), ets:match_spec()}].
-opaque compiled() :: all | #{Kind :: atom() => all | ets:compiled_match_spec()}.

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
        Alphabet -> [Kind || Kind <- [fork, init, exit, send, recv],
                     lists:any(fun({K, _}) -> K =:= Kind; (K) -> K =:= Kind end, Alphabet)]
    end.

-doc "Prepares an alphabet for `slice/2`. Raises `badarg` for a malformed match specification.".
-spec compile(alphabet()) -> compiled().
compile(all) -> all;
compile(Alphabet) ->
    Whole = #{Kind => all || Kind <- Alphabet, is_atom(Kind)},
    Parts = maps:groups_from_list(fun({Kind, _}) -> Kind end, fun({_, Spec}) -> Spec end,
                                  [Part || Part <- Alphabet, not is_atom(Part)]),
    maps:merge(#{Kind => matching(lists:append(Specs)) || Kind := Specs <- Parts}, Whole).

matching(Spec) -> ets:match_spec_compile([{Head, Guards, [true]} || {Head, Guards, _} <- Spec]).

-doc "Whether the monitor wants this event, as in `c:witness_monitor:slice/2`.".
-spec slice(witness_event:event(), compiled()) -> all | skip.
slice(_, all) -> all;
slice(E, Compiled) ->
    case Compiled of
        #{element(1, E) := all} -> all;
        #{element(1, E) := Spec} ->
            case ets:match_spec_run([data(E)], Spec) of
                [true] -> all;
                [] -> skip
            end;
        #{} -> skip
    end.

data({Kind, _, Other, Message, _}) when Kind =:= send; Kind =:= recv -> [Other, Message];
data({send, _, To, Message, _, _}) -> [To, Message];
data(E) -> tl(tuple_to_list(E)).
