-module(witness_record_noting).
-moduledoc """
A parse transform: programs without any code for tests note what their processes do, as those of `test/recorded` do by
themselves (`witness_recorded`). It shares no code with the weaver or the recorder, so it is independent of them. Each
message has an envelope with its sender, and the receiver notes that sender.

| In the source | What becomes of it |
|---|---|
| `To ! Msg`, `erlang:send(To, Msg)` | the message is `{'$noted', self(), Msg}` |
| `receive` | takes what is in envelopes, and notes it; messages of the VM (`'DOWN'`, `'EXIT'`) have no envelope |
| `after` | is noted |
| `spawn` and the like, `monitor`, `make_ref` | what they return is noted |

The servers of a benchmark have to do the same: `otp/1` makes copies of OTP's modules, from their debug information, under
other names, which programs call instead.
""".

-export([parse_transform/2, otp/1]).

-define(TAG, '$noted').
-define(NOTES, witness_recorded).

%% The modules with the loops, calls and births of a server.
-define(COPIED, [gen_server, gen, proc_lib]).

-doc false.
parse_transform(Forms, _) -> [form(Form) || Form <- Forms, not is_behaviour(Form)].

-doc "Writes the copies of OTP's modules to a folder.".
-spec otp(file:filename()) -> ok.
otp(Out) ->
    lists:foreach(fun(Module) ->
        {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} =
            beam_lib:chunks(code:which(Module), [abstract_code]),
        Kept = [Form || Form <- Forms, is_needed(Form)],
        {ok, Copy, Code} = compile:forms(parse_transform(Kept, []), [debug_info]),
        ok = file:write_file(filename:join(Out, atom_to_list(Copy) ++ ".beam"), Code)
    end, ?COPIED).

is_needed({attribute, _, Name, _}) -> lists:member(Name, [module, export, import, record, type, opaque, compile]);
is_needed(Form) -> element(1, Form) =:= function.

is_behaviour({attribute, _, Name, _}) -> lists:member(Name, [behaviour, behavior]);
is_behaviour(_) -> false.

form({attribute, Anno, Name, Value}) when Name =:= module; Name =:= import -> {attribute, Anno, Name, renamed(Value)};
form({attribute, _, _, _} = Form) -> Form;
form(Form) -> expr(Form).

renamed({Module, Functions}) -> {renamed(Module), Functions};
renamed(Name) ->
    case lists:member(Name, ?COPIED) of
        true -> list_to_atom("witness_noting_" ++ atom_to_list(Name));
        false -> Name
    end.

expr({atom, Anno, Name}) -> {atom, Anno, renamed(Name)};
expr({op, Anno, '!', To, Msg}) -> {op, Anno, '!', expr(To), enveloped(Anno, expr(Msg))};
expr({call, Anno, {remote, _, {atom, _, erlang}, {atom, _, send}} = Callee, [To, Msg | Options]}) ->
    {call, Anno, Callee, [expr(To), enveloped(Anno, expr(Msg)) | expr(Options)]};
expr({call, Anno, {remote, _, {atom, _, erlang}, {atom, _, Name}} = Callee, Args}) ->
    called(Anno, Name, Callee, expr(Args));
expr({call, Anno, {atom, _, Name} = Callee, Args}) ->
    case erl_internal:bif(Name, length(Args)) of
        true -> called(Anno, Name, Callee, expr(Args));
        false -> {call, Anno, expr(Callee), expr(Args)}
    end;
expr({'receive', Anno, Clauses}) -> {'receive', Anno, lists:flatmap(fun taking/1, Clauses)};
expr({'receive', Anno, Clauses, {atom, _, infinity} = Never, After}) ->
    {'receive', Anno, lists:flatmap(fun taking/1, Clauses), Never, expr(After)};
expr({'receive', Anno, Clauses, Time, After}) ->
    {'receive', Anno, lists:flatmap(fun taking/1, Clauses), expr(Time), [noting(Anno, timeout, []) | expr(After)]};
expr(Nodes) when is_list(Nodes) -> [expr(Node) || Node <- Nodes];
expr(Node) when is_tuple(Node) -> list_to_tuple(expr(tuple_to_list(Node)));
expr(Leaf) -> Leaf.

called(Anno, Name, Callee, Args) ->
    Call = {call, Anno, Callee, Args},
    case Name of
        _ when Name =:= spawn; Name =:= spawn_link; Name =:= spawn_monitor; Name =:= spawn_opt ->
            noting(Anno, child, [Call]);
        _ when Name =:= monitor; Name =:= make_ref ->
            MFA = [{atom, Anno, erlang}, {atom, Anno, Name}, {integer, Anno, length(Args)}],
            noting(Anno, result, [{tuple, Anno, MFA}, Call]);
        %% No program that is noted here calls these.
        _ when Name =:= spawn_request; Name =:= send_nosuspend ->
            error({not_noted, Name, erl_anno:location(Anno)});
        _ -> Call
    end.

noting(Anno, Function, Args) ->
    {call, Anno, {remote, Anno, {atom, Anno, ?NOTES}, {atom, Anno, Function}}, Args}.

enveloped(Anno, Msg) -> envelope(Anno, {call, Anno, {atom, Anno, self}, []}, Msg).

envelope(Anno, From, Msg) -> {tuple, Anno, [{atom, Anno, ?TAG}, From, Msg]}.

%% A pattern that can match both becomes two clauses, the one for envelopes first.
taking({clause, Anno, [Pattern], Guards, Body}) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    [Msg, From] = [{var, Anno, list_to_atom(Name ++ Unique)} || Name <- ["Msg@noted", "From@noted"]],
    %% The recording does not have the message itself, and there may be thousands of large ones.
    Hash = {call, Anno, {remote, Anno, {atom, Anno, erlang}, {atom, Anno, phash2}}, [Msg]},
    Sent = {clause, Anno, [envelope(Anno, From, {match, Anno, expr(Pattern), Msg})], expr(Guards),
            [noting(Anno, message, [From, Hash]) | expr(Body)]},
    Bare = fun(More) ->
        {clause, Anno, [{match, Anno, expr(Pattern), Msg}], More, [noting(Anno, bare, [Msg]) | expr(Body)]}
    end,
    case bare(Pattern) of
        yes -> [Bare(expr(Guards))];
        no -> [Sent];
        maybe_so -> [Sent, Bare(guarded(is_no_envelope(Anno, Msg), expr(Guards)))]
    end.

bare({tuple, _, [{atom, _, Signal} | _]}) when Signal =:= 'DOWN'; Signal =:= 'EXIT' -> yes;
bare({match, _, Left, Right}) -> hd([Bare || Bare <- [bare(Left), bare(Right)], Bare =/= maybe_so] ++ [maybe_so]);
bare({var, _, _}) -> maybe_so;
bare(_) -> no.

guarded(Test, []) -> [[Test]];
guarded(Test, Guards) -> [[Test | Guard] || Guard <- Guards].

is_no_envelope(Anno, Msg) ->
    Guard = fun(Name, Args) -> {call, Anno, {atom, Anno, Name}, Args} end,
    {op, Anno, 'not',
     {op, Anno, 'andalso', Guard(is_tuple, [Msg]),
      {op, Anno, 'andalso', {op, Anno, '=:=', Guard(tuple_size, [Msg]), {integer, Anno, 3}},
       {op, Anno, '=:=', Guard(element, [{integer, Anno, 1}, Msg]), {atom, Anno, ?TAG}}}}}.
