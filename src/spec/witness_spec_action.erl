-module(witness_spec_action).
-moduledoc """
Actions and signature patterns: the contents of `[...]` and `<...>`, and of `with`.

An action becomes one Erlang pattern over a `t:witness_event:event/0`, with a guard:

| written | matches |
|---|---|
| `P -> C, m:f(A)` | `{fork, P, C, {m, f, [A]}, _}` |
| `C <- P, m:f(A)` | `{init, C, P, {m, f, [A]}, _}` |
| `P ** R` or `P * R` | `{exit, P, R, _}` |
| `P : Q ! M` | `{send, P, Q, M, _}` |
| `P ? M` | `{recv, P, _, M, _}` |
| `P calls m:f(A)` | `{call, P, {m, f, [A]}, _}` |
| `P returns m:f/1 -> V` | `{return, P, {m, f, 1}, V, _}` |

`P : Q ! reply(From, R) to Request` is a reply with the request that it answers. Its pattern has `{request, Request}` in front of the
time; in the other sends of its property, `m:witness_spec_otp` puts a `_` there.

`a at T` has `T` in place of the last `_`, which is the time of the event. `else` has the pattern `_`: which events it leaves to the
actions beside it, `m:witness_spec_else` says.

Functions throw a `t:witness_spec_diagnostic:finding/0`.
""".

-export([action/2, signature/2, name/1, called/1, any/1, is_about_function/2, not_an_action/1]).
-export_type([action/0, signature/0, name/0]).

-doc """
A symbolic action. `text` is how its author wrote it; in `over`, `begins` says whether it is marked as one that begins slices. A `test` is
a condition of a `let` without an action: its pattern is `_`. `values` are the variables for the values of `let`s (`m:witness_spec_let`),
`each` those of `let`s with variables, and `shown` uses of these.

Until `m:witness_spec_define` has expanded it, the use of a definition has its `name` and its `arguments`, which are its pattern, too. In
the end `else` has the `others`. An action is `implied` by a sentence or machine, or written by the author; `why` is what a machine says where
this action violates it. Each action of a formula has its number (`order`): `m:witness_spec_else`. Until `m:witness_spec_record`
and `m:witness_spec_otp` have expanded it, its pattern and guard may have records, and a `call` for a message of OTP.
""".
-type action() :: #{kind := witness_event:kind() | 'else' | use | test,
                    location := witness_spec_diagnostic:location(),
                    text := binary(),
                    pattern := witness_spec_pattern:expr(),
                    guard := witness_spec_pattern:guard(),
                    begins => boolean(),
                    values => [atom()],
                    each => [atom()],
                    shown => [{binary(), witness_spec_pattern:expr()}],
                    name => atom(),
                    arguments => [{Text :: binary(), witness_spec_pattern:expr()}],
                    others => [action()],
                    implied => true,
                    why => binary(),
                    order => pos_integer()}.
-doc "A signature pattern: `{Module, Function, [Argument]}` as an Erlang pattern.".
-type signature() :: #{location := witness_spec_diagnostic:location(),
                       text := binary(),
                       pattern := witness_spec_pattern:expr(),
                       guard := witness_spec_pattern:guard()}.

-doc "The module, function and arity of a signature pattern; `'_'` is any.".
-type name() :: {module() | '_', atom() | '_', arity() | '_'}.

%% Why a function has to be named.
-define(TRACED, ": which functions are traced is settled before anything runs").

-type token() :: witness_spec_scan:token().
-type location() :: witness_spec_diagnostic:location().

-doc "Reads an action; `End` is the place after it.".
-spec action([token()], End :: location()) -> action().
action([], End) ->
    throw(witness_spec_diagnostic:error(End, syntax, "expected an action", forms()));
action([{'else', _} = Else], End) ->
    #{kind => 'else', location => witness_spec_scan:location(Else), text => witness_spec_scan:text([Else], End),
      pattern => {var, erl_anno:new(witness_spec_scan:location(Else)), '_'}, guard => []};
action([{'else', _}, Next | _], _) ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(Next), syntax,
        ["`else` stands alone, found ", witness_spec_diagnostic:quote(witness_spec_scan:token_text(Next))],
        "it matches every event that no other modality beside it describes, and binds nothing: `[else] f`, `<else> f`"));
action([First | _] = Tokens, End) ->
    {Timed, TimedEnd, Guard} = split_guard(Tokens, End),
    {Main, MainEnd, Time} = split_time(Timed, TimedEnd),
    Anno = erl_anno:new(witness_spec_scan:location(First)),
    case use(Main) of
        {Name, Arguments} ->
            #{kind => use, name => Name, arguments => Arguments, location => witness_spec_scan:location(First),
              text => witness_spec_scan:text(Tokens, End), guard => Guard,
              pattern => {tuple, Anno, [Pattern || {_, Pattern} <- Arguments] ++ [Time]}};
        none ->
            {Answer, AnswerEnd, Request} = split_request(Main, MainEnd),
            {Kind, Elements} = event(find_operator(Answer), AnswerEnd, First),
            check_request(Kind, Elements, Request),
            plain(Kind, Elements ++ [Answered || {_, Answered} <- [Request]] ++ [Time], Guard, Anno, Tokens, End)
    end.

%% The name of a definition, with arguments.
use([{var, _, Name}]) when Name =/= '_' -> {Name, []};
use([{var, _, Name}, {'(', _} = Open | Rest]) when Name =/= '_' ->
    case witness_spec_pattern:split_enclosed([Open | Rest]) of
        {[], Close, []} ->
            throw(witness_spec_diagnostic:error(witness_spec_scan:location(Close), syntax, "there is nothing in these parentheses"));
        {Inside, Close, []} ->
            {Name, [{witness_spec_scan:text(Part, End), witness_spec_pattern:pattern(Part, "an argument", End)}
                    || {Part, End} <- witness_spec_pattern:split(Inside, ',', witness_spec_scan:location(Close))]};
        _ -> none
    end;
use(_) -> none.

plain(Kind, Elements, Guard, Anno, [First | _] = Tokens, End) ->
    #{kind => Kind,
      location => witness_spec_scan:location(First),
      text => witness_spec_scan:text(Tokens, End),
      pattern => {tuple, Anno, [{atom, Anno, Kind} | Elements]},
      guard => Guard}.

-doc "Reads a signature pattern, `m:f(A, B)` with an optional guard.".
-spec signature([token()], End :: location()) -> signature().
signature([], End) ->
    expected_signature(End);
signature([First | _] = Tokens, End) ->
    {Main, MainEnd, Guard} = split_guard(Tokens, End),
    #{location => witness_spec_scan:location(First), text => witness_spec_scan:text(Tokens, End),
      pattern => call_pattern(Main, MainEnd), guard => Guard}.

-doc """
The name of a signature pattern. If the pattern matches, its name matches too; the arguments and the guard may
exclude what the name allows.
""".
-spec name(signature()) -> name().
name(#{pattern := {tuple, _, [Module, Function, Arguments]}}) ->
    {named(Module), named(Function), arity(Arguments, 0)};
name(_) ->
    {'_', '_', '_'}.

named({atom, _, Name}) -> Name;
named(_) -> '_'.

arity({cons, _, _, Rest}, N) -> arity(Rest, N + 1);
arity({nil, _}, N) -> N;
arity(_, _) -> '_'.

split_guard(Tokens, End) ->
    case witness_spec_pattern:split(Tokens, 'when', End) of
        [{Main, MainEnd}] -> {Main, MainEnd, []};
        [{Main, MainEnd}, {Guard, GuardEnd}] ->
            check_time(Guard, none),
            {Main, MainEnd, witness_spec_pattern:guard(Guard, GuardEnd)};
        [_, {_, Second} | _] -> throw(witness_spec_diagnostic:error(Second, syntax, "there is a second `when` here"))
    end.

%% `a at T` has the variable for the time.
split_time(Tokens, End) ->
    case lists:reverse(Tokens) of
        [{var, _, _} = Variable, {atom, _, at} = At | Before] ->
            Main = lists:reverse(Before),
            check_time(Main, none),
            {Main, witness_spec_scan:location(At), variable_at(Variable)};
        _ ->
            check_time(Tokens, none),
            {Tokens, End, {var, erl_anno:new(End), '_'}}
    end.

%% An `at` behind an operand is no atom of a pattern or guard.
check_time([{atom, _, at}, {var, _, _}, {atom, _, to} = To | _], operand) ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(To), syntax, "`to` stands in front of `at`",
                                        "as in `_ : _ ! reply(From, R) to Request at T`"));
check_time([{atom, _, at} = At | _], operand) ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(At), syntax,
        "expected one variable behind `at`, and then the end or `when`",
        "as in `[P ? M at T]` or `[P ? M at U when U > T + 5 s]`: the variable gets the time of the event"));
check_time([Token | Rest], _) ->
    case witness_spec_scan:closing(Token) of
        none -> check_time(Rest, case Token of {_, _, _} -> operand; _ -> none end);
        _ -> check_time(element(3, witness_spec_pattern:split_enclosed([Token | Rest])), operand)
    end;
check_time([], _) -> ok.

%% `reply(From, R) to Request` has the pattern of the request. Behind an operand, an atom can be nothing else.
split_request(Tokens, End) ->
    case witness_spec_pattern:split_before(Tokens, fun is_to/2) of
        {Answer, [{atom, _, to} = To | Request]} ->
            At = witness_spec_scan:location(To),
            Anno = erl_anno:new(At),
            check_bare(Request),
            Pattern = witness_spec_pattern:pattern(Request, "the request behind `to`", End),
            {Answer, At, {At, {tuple, Anno, [{atom, Anno, request}, Pattern]}}};
        {_, []} ->
            {Tokens, End, none}
    end.

is_to([{atom, _, to} | _], [Last | _]) -> witness_spec_scan:ends_operand(Last);
is_to(_, _) -> false.

check_bare([{atom, _, call} = Call, {'(', _} | _]) ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(Call), wrapped_request,
        "behind `to` stands the request alone, without `call`", "as in `reply(From, R) to Request`, for what is replied to `call(From, Request)`"));
check_bare(_) -> ok.

check_request(_, _, none) -> ok;
check_request(send, [_, _, {call, _, {atom, _, reply}, _}], _) -> ok;
check_request(_, _, {At, _}) ->
    throw(witness_spec_diagnostic:error(At, needless_request, "`to` stands behind a reply that is sent, and this is none",
        "as in `_ : _ ! reply(From, R) to Request`, for the request of the call that is answered")).

find_operator([{atom, _, Word} = First, {_, _, _}, {Sign, _} | _])
  when (Word =:= calls orelse Word =:= returns) andalso (Sign =:= ':' orelse Sign =:= '.') ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(First), syntax,
        ["`", atom_to_list(Word), "` needs the process in front of it"], "as in `_ calls m:f(A)` or `_ returns m:f/1 -> V`"));
find_operator(Tokens) ->
    case witness_spec_pattern:split_before(Tokens, fun is_about_function/2) of
        {Before, [{atom, _, calls} = Word | After]} -> {call, Before, Word, After};
        {Before, [{atom, _, returns} = Word | After]} -> {return, Before, Word, After};
        {_, []} -> operator(Tokens, [])
    end.

-doc "Whether a `calls` or `returns` is here, behind these tokens, the last one first. Behind an operand, an atom can be nothing else.".
-spec is_about_function([token(), ...], Before :: [token()]) -> boolean().
is_about_function([{atom, _, Word} | _], [Last | _]) when Word =:= calls; Word =:= returns -> witness_spec_scan:ends_operand(Last);
is_about_function(_, _) -> false.

%% The first operator outside brackets, with the tokens before and after it.
operator([{'--', _} = Dash, {'>', _} = Tip | Rest], Before) ->
    case witness_spec_scan:after_token(Dash) =:= witness_spec_scan:location(Tip) of
        true -> {fork, lists:reverse(Before), Dash, Rest};
        false -> operator([Tip | Rest], [Dash | Before])
    end;
operator([{'->', _} = Arrow | Rest], Before) -> {fork, lists:reverse(Before), Arrow, Rest};
operator([{'<-', _} = Arrow, {'-', _} = Dash | Rest], Before) ->
    case witness_spec_scan:after_token(Arrow) =:= witness_spec_scan:location(Dash) of
        true -> {init, lists:reverse(Before), Arrow, Rest};
        false -> {init, lists:reverse(Before), Arrow, [Dash | Rest]}
    end;
operator([{'<-', _} = Arrow | Rest], Before) -> {init, lists:reverse(Before), Arrow, Rest};
operator([{'*', _} = Star, {'*', _} | Rest], Before) -> {exit, lists:reverse(Before), Star, Rest};
operator([{'*', _} = Star | Rest], Before) -> {exit, lists:reverse(Before), Star, Rest};
operator([{':', _} = Colon | Rest], Before) -> {send, lists:reverse(Before), Colon, Rest};
operator([{'?', _} = Mark | Rest], Before) -> {recv, lists:reverse(Before), Mark, Rest};
operator([Token | Rest], Before) ->
    case witness_spec_scan:closing(Token) of
        none ->
            operator(Rest, [Token | Before]);
        _ ->
            {Inside, Close, After} = witness_spec_pattern:split_enclosed([Token | Rest]),
            operator(After, [Close | lists:reverse([Token | Inside], Before)])
    end;
operator([], _) ->
    none.

event({fork, Before, At, After}, End, _) ->
    {Child, Signature} = spawn_pattern(After, End, "`P -> C, m:f(A)`"),
    {fork, [subject(Before, "the parent process", At), witness_spec_pattern:pattern(Child, "the child process", End),
            Signature]};
event({init, Before, At, After}, End, _) ->
    {Parent, Signature} = spawn_pattern(After, End, "`C <- P, m:f(A)`"),
    {init, [subject(Before, "the child process", At), witness_spec_pattern:pattern(Parent, "the parent process", End),
            Signature]};
event({exit, Before, At, After}, End, _) ->
    {exit, [subject(Before, "the process", At), witness_spec_pattern:pattern(After, "the exit reason", End)]};
event({send, Before, At, After}, End, _) ->
    case witness_spec_pattern:split(After, '!', End) of
        [{To, ToEnd}, {Message, MessageEnd}] ->
            {send, [subject(Before, "the sender", At), witness_spec_pattern:pattern(To, "the receiver", ToEnd),
                    witness_spec_otp:message(Message, "the message", MessageEnd)]};
        [_] ->
            throw(witness_spec_diagnostic:error(End, syntax, "expected `!` and a message",
                "a send is written `P : Q ! M`"));
        [_, {_, Second} | _] ->
            throw(witness_spec_diagnostic:error(Second, syntax, "there is a second `!` here"))
    end;
event({recv, Before, At, After}, End, _) ->
    Anno = erl_anno:new(witness_spec_scan:location(At)),
    {recv, [subject(Before, "the process", At), {var, Anno, '_'},
            witness_spec_otp:message(After, "the message", End)]};
event({call, Before, At, After}, End, _) ->
    {call, [subject(Before, "the process", At), function_call(After, End)]};
event({return, Before, At, After}, End, _) ->
    {Function, Value} = return(After, End),
    {return, [subject(Before, "the process", At), Function, witness_spec_pattern:pattern(Value, "the value", End)]};
event(none, _, First) ->
    throw(not_an_action(witness_spec_scan:location(First))).

-doc "The error for what is neither an action nor the name of one.".
-spec not_an_action(location()) -> witness_spec_diagnostic:finding().
not_an_action(Location) -> witness_spec_diagnostic:error(Location, syntax, "this is not an action", forms()).

function_call([{atom, _, _}, {':', _}, {atom, _, _}, {'/', _} = Slash | _], _) ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(Slash), syntax, "`calls` needs the arguments",
                                        "as in `_ calls m:f(_, _)`: the number of arguments belongs to `returns`"));
function_call(Tokens, End) ->
    case call_pattern(Tokens, End) of
        {tuple, _, [{atom, _, _}, {atom, _, _}, _]} = Call -> Call;
        _ ->
            throw(witness_spec_diagnostic:error(witness_spec_scan:location(hd(Tokens)), unnamed_function,
                "`calls` needs the name of the function", ["as in `_ calls ets:insert(Table, _)`", ?TRACED]))
    end.

return(Tokens, End) ->
    {Function, Arrow} = witness_spec_pattern:split_before(Tokens, fun(Left, _) -> element(1, hd(Left)) =:= '->' end),
    Form = ["as in `_ returns m:f/1 -> Value`", ?TRACED],
    Name = case Function of
        [{atom, _, _} = Module, {':', _} | Own] -> {variable_at(Module), Own};
        [{var, _, _} = First, {'.', _} | _] ->
            {Segments, Own} = alias(Function, []),
            {{atom, erl_anno:new(witness_spec_scan:location(First)), elixir_module(Segments)}, Own};
        _ -> none
    end,
    case {Name, Arrow} of
        {{_, [{atom, _, _}, {'/', _}, {integer, _, Arguments} = Arity]}, _} when Arguments > 255 ->
            throw(witness_spec_diagnostic:error(witness_spec_scan:location(Arity), syntax, "a function has at most 255 arguments"));
        {{{_, Anno, _} = Of, [{atom, _, _} = Named, {'/', _}, {integer, _, _} = Arity]}, [_ | Value]} ->
            {{tuple, Anno, [Of, variable_at(Named), variable_at(Arity)]}, Value};
        {{_, [{atom, _, _}, {'/', _}, {integer, _, _}]}, []} ->
            throw(witness_spec_diagnostic:error(End, syntax, "expected `->` and the value", Form));
        _ ->
            throw(witness_spec_diagnostic:error(case Tokens of [] -> End; [Begin | _] -> witness_spec_scan:location(Begin) end,
                unnamed_function, "`returns` needs the name of the function, and the number of its arguments", Form))
    end.

-doc "The function that an action is about; `none` if it is about none.".
-spec called(action()) -> {call | return, mfa()} | none.
called(#{kind := call, pattern := {tuple, _, [_, _, {tuple, _, [{atom, _, M}, {atom, _, F}, Arguments]}, _]}}) ->
    {call, {M, F, arity(Arguments, 0)}};
called(#{kind := return, pattern := {tuple, _, [_, _, {tuple, _, [{atom, _, M}, {atom, _, F}, {integer, _, Arity}]}, _, _]}}) ->
    {return, {M, F, Arity}};
called(_) -> none.

-doc "The action that matches all events of a kind, or of the calls or returns of a function, as text.".
-spec any(fork | init | exit | send | recv | {call | return, mfa()}) -> string().
any(fork) -> "_ -> _, _";
any(init) -> "_ <- _, _";
any(exit) -> "_ ** _";
any(send) -> "_ : _ ! _";
any(recv) -> "_ ? _";
any({call, {M, F, A}}) -> lists:flatten(io_lib:format("_ calls ~tw:~tw(~ts)", [M, F, lists:join(", ", lists:duplicate(A, "_"))]));
any({return, {M, F, A}}) -> lists:flatten(io_lib:format("_ returns ~tw:~tw/~b -> _", [M, F, A])).

subject(Tokens, What, Operator) ->
    witness_spec_pattern:pattern(Tokens, What, witness_spec_scan:location(Operator)).

spawn_pattern(Tokens, End, Form) ->
    case witness_spec_pattern:split(Tokens, ',', End) of
        [{Process, _} | [_ | _]] ->
            {Process, call_pattern(lists:nthtail(length(Process) + 1, Tokens), End)};
        [_] ->
            throw(witness_spec_diagnostic:error(End, syntax, "expected `,` and a signature", ["it is written ", Form]))
    end.

%% A variable matches any signature.
call_pattern([{var, Anno, Name}], _) ->
    {var, erl_anno:new({erl_anno:line(Anno), erl_anno:column(Anno)}), Name};
call_pattern([{var, _, _} = First, {'.', _} | _] = Tokens, End) ->
    {Segments, Function} = alias(Tokens, []),
    Module = {atom, erl_anno:new(witness_spec_scan:location(First)), elixir_module(Segments)},
    call_pattern(Module, Function, End);
call_pattern([{Kind, _, _} = Module, {':', _} | Function], End) when Kind =:= atom; Kind =:= var ->
    call_pattern(variable_at(Module), Function, End);
call_pattern([Token | _], _) ->
    expected_signature(witness_spec_scan:location(Token));
call_pattern([], End) ->
    expected_signature(End).

call_pattern(Module, [{Kind, _, _} = Function, {'(', _} = Open | Rest], _) when Kind =:= atom; Kind =:= var ->
    Anno = element(2, Module),
    Arguments = case witness_spec_pattern:split_enclosed([Open | Rest]) of
        {[], _, []} -> [];
        {Inside, Close, []} ->
            [witness_spec_pattern:pattern(Part, "an argument", PartEnd) ||
                {Part, PartEnd} <- witness_spec_pattern:split(Inside, ',', witness_spec_scan:location(Close))];
        {_, _, [Extra | _]} ->
            behind_signature(Extra)
    end,
    {tuple, Anno, [Module, variable_at(Function), list(Arguments, Anno)]};
call_pattern({_, Anno, _}, _, _) ->
    expected_signature({erl_anno:line(Anno), erl_anno:column(Anno)}).

-spec behind_signature(witness_spec_scan:token()) -> no_return().
behind_signature(Token) ->
    Found = string:lowercase(witness_spec_scan:token_text(Token)),
    Words = ["monitor", "check", "none", "machine", "over", "per", "group", "among", "never", "always", "exactly", "unique", "increasing"],
    Text = ["expected the end of the signature, found ", witness_spec_diagnostic:quote(witness_spec_scan:token_text(Token))],
    case witness_spec_diagnostic:similar(Found, Words) of
        [Word | _] -> witness_spec_scan:refuse(Token, Text, ["did you mean `", Word, "`?"]);
        [] -> throw(witness_spec_diagnostic:error(witness_spec_scan:location(Token), syntax, Text))
    end.

variable_at({Kind, Anno, Name}) -> {Kind, erl_anno:new({erl_anno:line(Anno), erl_anno:column(Anno)}), Name}.

%% The segments of `My.App` before `.f(`.
alias([{var, _, Name} = Segment, {'.', _} | Rest], Segments) ->
    case atom_to_list(Name) of
        [First | _] when First >= $A, First =< $Z -> alias(Rest, [Segment | Segments]);
        _ -> expected_signature(witness_spec_scan:location(Segment))
    end;
alias(Function, Segments) -> {lists:reverse(Segments), Function}.

elixir_module([First | _] = Segments) ->
    Written = lists:join(".", ["Elixir" | [atom_to_list(Name) || {var, _, Name} <- Segments]]),
    case lists:flatten(Written) of
        Name when length(Name) < 256 -> list_to_atom(Name);
        _ -> throw(witness_spec_diagnostic:error(witness_spec_scan:location(First), syntax,
                                                 "the name of a module has at most 255 characters"))
    end.

list(Elements, Anno) ->
    lists:foldr(fun(Element, Tail) -> {cons, Anno, Element, Tail} end, {nil, Anno}, Elements).

-spec expected_signature(location()) -> no_return().
expected_signature(Location) ->
    throw(witness_spec_diagnostic:error(Location, syntax, "expected a signature",
        "a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir")).

forms() ->
    "an action is one of `P -> C, m:f(A)`, `C <- P, m:f(A)`, `P ** R`, `P : Q ! M`, `P ? M`, `P calls m:f(A)`, "
    "`P returns m:f/1 -> V`".
