-module(witness_instrumentation).
-moduledoc """
What a user gives, as instrumentation maps: a specification file is one map, and so is each
monitor given by itself (`m:witness_outline_map`).
""".

-export([of_spec/1, of_monitor/1, key/1, key/2, own/1]).

-doc "Names a property in verdicts and warnings.".
-type key() :: {Spec :: binary(), Name :: binary() | undefined}.

-spec of_spec(witness_spec:instrumentation_map()) -> witness_outline_map:instrumentation().
of_spec(Spec = #{module := Module, entries := Entries}) ->
    Compiled = #{Index => entry(Spec, E) || E = #{index := Index} <- Entries},
    fun(Signature) -> [maps:get(Index, Compiled) || Index <- Module:match(Signature)] end.

entry(_, #{action := none}) -> none;
entry(Spec = #{module := Module}, E = #{index := Index, group := Group}) ->
    {{Text, Name}, _} = key(Spec, E),
    #{monitor => {Module, Index}, spec => Text, name => Name, group => Group}.

-spec of_monitor({witness_options:signature_pattern(), {module(), term()}}) ->
    witness_outline_map:instrumentation().
of_monitor(Given = {{M, F, A}, Monitor}) ->
    {{Text, Name}, _} = key(Given),
    Entry = #{monitor => Monitor, spec => Text, name => Name, group => false},
    fun({M1, F1, Args}) when (M =:= '_' orelse M =:= M1), (F =:= '_' orelse F =:= F1) ->
            case A =:= '_' orelse (is_list(Args) andalso A =:= length(Args)) of
                true -> [Entry];
                false -> []
            end;
       (_) -> []
    end.

-doc "A property's name and the text of its signature patterns.".
-spec key(witness_spec:instrumentation_map(), witness_spec:entry()) -> {key(), Signature :: binary()}.
key(#{file := File}, #{line := Line, name := Name, signature := Signature}) ->
    {{<<File/binary, $:, (integer_to_binary(Line))/binary>>, Name}, Signature}.

-spec key({witness_options:signature_pattern(), {module(), term()}}) -> {key(), Signature :: binary()}.
key({{M, F, A}, {Module, _}}) ->
    Signature = unicode:characters_to_binary(io_lib:format("~tw:~tw/~tw", [M, F, A])),
    {{atom_to_binary(Module), undefined}, Signature}.

-doc """
Whether a process is Witness's own: one that runs a module of this application, or one of
those named. They are never observed.
""".
-spec own([pid()]) -> fun((pid()) -> boolean()).
own(Unobserved) ->
    {ok, Modules} = application:get_key(witness, modules),
    fun(P) ->
            Calls = [proc_lib:translate_initial_call(P) | [MFA || {_, MFA} <- [process_info(P, initial_call)]]],
            lists:member(P, Unobserved)
                orelse lists:any(fun(Call) -> lists:member(module(Call), Modules) end, Calls)
    end.

module({supervisor, M, _}) -> M;
module({M, _, _}) -> M.
