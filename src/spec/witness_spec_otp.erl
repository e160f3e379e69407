-module(witness_spec_otp).
-moduledoc """
The messages of OTP's behaviours by name, as whole messages of `P ? M` and `P : Q ! M`:

| written | message |
|---|---|
| `call(From, Request)` | `{'$gen_call', From, Request}` |
| `cast(Message)` | `{'$gen_cast', Message}` |
| `reply(From, Reply)` | `{Tag, Reply}`, where `From` is the `{Pid, Tag}` of a call |
| `notify(Event)` | `{notify, Event}` |
| `sync_notify(From, Event)` | `{_, From, {sync_notify, Event}}` |
| `call(From, Handler, Request)` | `{_, From, {call, Handler, Request}}` |
| `info(Message)` | any other message: an argument of `handle_info/2` |

The first three are those of `gen_server` and `gen_statem`, the next three those of `gen_event`. A tag is a reference,
or, if the caller waits with an alias, `[alias | Reference]`, or `[[alias | Reference] | Label]`. A reply goes to
the caller or to its alias, so its receiver is best left open. `info` excludes the messages above it except replies with
a plain reference. It also excludes all other requests to a `gen_event` (`{Pid, {Pid, Tag}, Request}`, where the request is one of
OTP's) and `{system, From, Request}`.

A reply has the tag of its call, not the caller. So the `From` of a reply is `_`, which matches every reply; a variable
that is bound to the `From` of a call; or `{_, Tag}`. In slices, if a variable of `per` is the `From` of a reply in
`over`, it means the tag alone, there and in the formula: it can be the `From` of calls and replies, and nothing else.

`reply(From, Reply) to Request` also has a pattern for the request that is answered (`m:witness_spec_action`). In a property with such
an action, `expand/1` puts `_` for the request into all other sends: its monitor is given sends with one element more
(`m:witness_monitor_requests`).

`message/3` reads these patterns. `expand/1` makes plain patterns and guards of them: it needs to know which variables
are bound. It adds variables `_@1`, `_@2`..., numbered from the outermost action inwards, so that an inner one
is never bound already.
""".

-export([message/3, expand/1]).

-type expr() :: witness_spec_pattern:expr().
-type property() :: witness_spec_parse:property().

%% Tests in guards, about the tag T of a reply, the first argument From of `reply`, and a message M. A guard that fails
%% has no other alternative, so only the last test of an alternative may use a part of a term without checking the term first.
-define(ANY_TAG, "is_reference(T) orelse hd(T) =:= alias orelse hd(hd(T)) =:= alias").
-define(TAG_OF, "T =:= element(2, From)").
-define(INFO_PAIR,
    "element(1, M) =/= '$gen_cast' andalso element(1, M) =/= notify"
    " andalso not (is_list(element(1, M)) andalso element(1, M) =/= []"
    "   andalso (hd(element(1, M)) =:= alias orelse is_list(hd(element(1, M))) andalso hd(element(1, M)) =/= []"
    "     andalso hd(hd(element(1, M))) =:= alias))").
-define(INFO_TRIPLE,
    "element(1, M) =/= '$gen_call' andalso element(1, M) =/= system"
    " andalso not (is_pid(element(1, M)) andalso is_tuple(element(2, M)) andalso tuple_size(element(2, M)) =:= 2"
    "   andalso is_pid(element(1, element(2, M)))"
    "   andalso (element(3, M) =:= which_handlers orelse element(3, M) =:= get_modules"
    "     orelse is_tuple(element(3, M)) andalso tuple_size(element(3, M)) > 1"
    "       andalso (element(1, element(3, M)) =:= sync_notify orelse element(1, element(3, M)) =:= call"
    "         orelse element(1, element(3, M)) =:= add_handler orelse element(1, element(3, M)) =:= add_sup_handler"
    "         orelse element(1, element(3, M)) =:= delete_handler orelse element(1, element(3, M)) =:= swap_handler"
    "         orelse element(1, element(3, M)) =:= swap_sup_handler)))").
-define(INFO,
    "not is_tuple(M) orelse tuple_size(M) =/= 2 andalso tuple_size(M) =/= 3"
    " orelse tuple_size(M) =:= 2 andalso " ?INFO_PAIR
    " orelse tuple_size(M) =:= 3 andalso " ?INFO_TRIPLE).

%% The compiler's effort for the test of `info` grows faster than the number of tests.
-define(MAX_INFOS, 200).
%% Each nested action is a state of the monitor, and there cannot be more of these.
-define(MAX_ADDED, 2_000).

-doc "Reads the pattern of a message. The name of a message of OTP becomes a `call` in the abstract format.".
-spec message([witness_spec_scan:token()], What :: unicode:chardata(), witness_spec_diagnostic:location()) -> expr().
message([{atom, _, Name} = Token, {'(', _} = Open | Rest] = Tokens, What, End) ->
    case arities(Name) of
        [] ->
            witness_spec_pattern:pattern(Tokens, What, End);
        Arities ->
            case witness_spec_pattern:split_enclosed([Open | Rest]) of
                {Inside, Close, []} -> call(Token, arguments(Inside, witness_spec_scan:location(Close)), Arities);
                {_, _, _} -> witness_spec_pattern:pattern(Tokens, What, End)
            end
    end;
message(Tokens, What, End) ->
    witness_spec_pattern:pattern(Tokens, What, End).

arities(call) -> [2, 3];
arities(reply) -> [2];
arities(sync_notify) -> [2];
arities(Name) when Name =:= cast; Name =:= info; Name =:= notify -> [1];
arities(_) -> [].

arguments([], _) ->
    [];
arguments(Tokens, End) ->
    [witness_spec_pattern:pattern(Part, "an argument", PartEnd) ||
        {Part, PartEnd} <- witness_spec_pattern:split(Tokens, ',', End)].

call({atom, _, Name} = Token, Arguments, Arities) ->
    Location = witness_spec_scan:location(Token),
    lists:member(length(Arguments), Arities) orelse
        throw(witness_spec_diagnostic:error(Location, message_pattern,
            ["wrong number of arguments for `", atom_to_list(Name), "`"],
            ["it is written ", forms(Name)])),
    Anno = erl_anno:new(Location),
    {call, Anno, {atom, Anno, Name}, Arguments}.

forms(call) -> "`call(From, Request)`, or `call(From, Handler, Request)` for gen_event";
forms(reply) -> "`reply(From, Reply)`";
forms(sync_notify) -> "`sync_notify(From, Event)`";
forms(notify) -> "`notify(Event)`";
forms(Name) -> ["`", atom_to_list(Name), "(Message)`"].

-doc "The properties with plain patterns. A property with an error is left out.".
-spec expand([property()]) -> {[property()], [witness_spec_diagnostic:finding()]}.
expand(Properties) ->
    Tests = tests(),
    {Expanded, Findings, _} = lists:foldl(fun(Property, {Done, Found, Infos}) ->
        try property(Property, Tests, Infos) of
            {Plain, More} -> {[Plain | Done], Found, More}
        catch
            throw:{error, _, _, _, _} = Finding -> {Done, [Finding | Found], Infos}
        end
    end, {[], [], 0}, Properties),
    {lists:reverse(Expanded), lists:reverse(Findings)}.

%% The context of an action: `scope` are the bound variables, `tags` those of `per` that mean a tag,
%% `added` counts the added variables, and `requests` says whether sends have requests. `Infos` counts the tests of `info`
%% in the file.
property(#{formula := Formula, over := Over, lets := Lets, per := Per, signatures := Signatures} = Property, Tests, Infos) ->
    Signed = ordsets:intersection([witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures]),
    Requests = has_requests(Property),
    Outside = #{scope => Signed, tags => tags(Over, Per), added => 0, tests => Tests, requests => Requests},
    {Seen, More} = over(Over, Outside, Infos),
    Inside = Outside#{scope := ordsets:union(Signed, ordsets:from_list(Per))},
    {Known, Before} = witness_spec_parse:map_lets(fun(Action, Count) -> alone(Action, Inside, Count) end, More, Lets),
    {Expanded, All} = witness_spec_parse:actions(fun action/3, Inside, Before, Formula),
    {Property#{over := Seen, lets := Known, formula := Expanded, requests => Requests}, All};
property(Property, _, Infos) ->
    {Property, Infos}.

has_requests(Property) ->
    lists:any(fun(#{kind := send, pattern := {tuple, _, Elements}}) -> length(Elements) =:= 6; (_) -> false end,
              witness_spec_parse:property_actions(Property)).

over(all, _, Infos) ->
    {all, Infos};
over(Actions, Context, Infos) ->
    lists:mapfoldl(fun(Action, Before) -> alone(Action, Context, Before) end, Infos, Actions).

%% An action that no other one stands behind.
alone(Action, Context, Infos) ->
    {Expanded, _, After} = action(Action, Context, Infos),
    {Expanded, After}.

tags(all, _) -> [];
tags(Actions, Per) ->
    [Name || #{pattern := {tuple, _, [_, _, _, {call, _, {atom, _, reply}, [{var, _, Name}, _]} | _]}} <- Actions,
             lists:member(Name, Per)].

action(#{kind := send, pattern := {tuple, Anno, [Send, P, Q, Message, Time]}} = Action, #{requests := true} = Context, Infos) ->
    Unasked = {var, Anno, '_'},
    action(Action#{pattern := {tuple, Anno, [Send, P, Q, Message, Unasked, Time]}}, Context, Infos);
action(#{pattern := {tuple, Anno, [Kind, Process, Other, Message | Behind]}, guard := Guard} = Action, Context,
       Infos) when element(1, Message) =:= call ->
    #{scope := Scope, tags := Tags, added := Added} = Context,
    Next = variable(Added + 1, element(2, Message)),
    {Pattern, Tests} = expand_message(Message, Next, Context),
    misused_tags([without_tag(Message, Tags), Process, Other, lists:droplast(Behind), Guard], Tags),
    Whole = {tuple, Anno, [Kind, Process, Other, Pattern | Behind]},
    {Action#{pattern := Whole, guard := add_tests(Tests, Guard)},
     Context#{scope := ordsets:union(Scope, witness_spec_pattern:variables(Whole)),
              added := case mentions(Next, Pattern) of true -> Added + 1; false -> Added end},
     count_info(Message, Tests, Infos)};
action(#{pattern := Pattern, guard := Guard} = Action, #{scope := Scope, tags := Tags} = Context, Infos) ->
    misused_tags([Pattern, Guard], Tags),
    {Action, Context#{scope := ordsets:union(Scope, witness_spec_pattern:variables(Pattern))}, Infos}.

count_info({call, _, {atom, _, info}, _}, [_], Infos) when Infos < ?MAX_INFOS ->
    Infos + 1;
count_info({call, Anno, {atom, _, info}, _}, [_], _) ->
    throw(witness_spec_diagnostic:error(location({call, Anno}), too_large,
        io_lib:format("`info` stands more than ~b times in this file", [?MAX_INFOS]),
        "one whose pattern begins with an atom, as in `info({stop, _})`, does not count"));
count_info(_, _, Infos) ->
    Infos.

variable(Number, Anno) when Number =< ?MAX_ADDED ->
    {var, Anno, list_to_atom("_@" ++ integer_to_list(Number))};
variable(_, Anno) ->
    throw(witness_spec_diagnostic:error(location({var, Anno}), too_large,
        io_lib:format("more than ~b actions stand one behind the other", [?MAX_ADDED]))).

mentions({var, _, Name}, Pattern) -> ordsets:is_element(Name, witness_spec_pattern:variables(Pattern)).

add_tests([], Guard) -> Guard;
add_tests(Tests, []) -> [Tests];
add_tests(Tests, Guard) -> [Tests ++ Alternative || Alternative <- Guard].

%% The pattern of a message, and the tests that belong to it. `Next` is a free variable.
expand_message({call, Anno, {atom, _, reply}, [From, Reply]}, Next, Context) ->
    {Tag, Tests} = tag(From, Next, Context),
    {{tuple, Anno, [Tag, Reply]}, Tests};
expand_message({call, Anno, {atom, _, info}, [Message]}, Next, Context) ->
    info(Message, Next, Anno, Context);
expand_message({call, Anno, {atom, _, call}, [From, Request]}, _, Context) ->
    {{tuple, Anno, [{atom, Anno, '$gen_call'}, caller(From, Context), Request]}, []};
expand_message({call, Anno, {atom, _, cast}, [Message]}, _, _) ->
    {{tuple, Anno, [{atom, Anno, '$gen_cast'}, Message]}, []};
expand_message({call, Anno, {atom, _, notify}, [Event]}, _, _) ->
    {{tuple, Anno, [{atom, Anno, notify}, Event]}, []};
expand_message({call, Anno, {atom, _, sync_notify} = Kind, [From, Event]}, _, Context) ->
    {{tuple, Anno, [{var, Anno, '_'}, caller(From, Context), {tuple, Anno, [Kind, Event]}]}, []};
expand_message({call, Anno, {atom, _, call} = Kind, [From, Handler, Request]}, _, Context) ->
    {{tuple, Anno, [{var, Anno, '_'}, caller(From, Context), {tuple, Anno, [Kind, Handler, Request]}]}, []}.

caller({var, Anno, Name} = From, #{tags := Tags}) ->
    case lists:member(Name, Tags) of
        true -> {tuple, Anno, [{var, Anno, '_'}, From]};
        false -> From
    end;
caller(From, _) ->
    From.

tag({var, Anno, '_'}, Next, Context) ->
    {Next, [test(any_tag, [{'T', Next}], Anno, Context)]};
tag({var, Anno, Name} = From, Next, #{scope := Scope, tags := Tags} = Context) ->
    case {lists:member(Name, Tags), ordsets:is_element(Name, Scope)} of
        {true, true} ->
            {From, []};
        %% In `over`: otherwise a message that is not a reply would begin a slice of its own.
        {true, false} ->
            {From, [test(any_tag, [{'T', From}], Anno, Context)]};
        {false, true} ->
            {Next, [test(tag_of, [{'T', Next}, {'From', From}], Anno, Context)]};
        {false, false} ->
            throw(witness_spec_diagnostic:error(location(From), unbound_variable,
                ["the variable ", witness_spec_diagnostic:quote(atom_to_list(Name)), " is not bound"],
                "a reply does not name its caller: bind it by `call(From, _)` in front, or write `reply(_, R)`, or"
                " `reply({_, Tag}, R)` for the tag"))
    end;
tag({tuple, _, [{var, _, '_'}, Tag]}, _, _) ->
    {Tag, []};
tag(From, _, _) ->
    throw(witness_spec_diagnostic:error(location(From), message_pattern, "a reply does not name its caller",
        "its first argument is `_`, the `From` of a call, or `{_, Tag}`")).

%% The part of the test that the pattern leaves open.
info({tuple, _, [{atom, _, Name} | Others]} = Message, _, _, _) ->
    case lists:member({Name, length(Others)}, [{'$gen_call', 2}, {'$gen_cast', 1}, {system, 2}, {notify, 1}]) of
        true ->
            throw(witness_spec_diagnostic:error(location(Message), message_pattern,
                "`info` leaves out the requests of OTP, and this is one of them",
                "for what it is otherwise, write the pattern without `info(...)`"));
        false ->
            {Message, []}
    end;
info({tuple, _, [_, _]} = Message, Next, Anno, Context) -> info(info_pair, Message, Next, Anno, Context);
info({tuple, _, [_, _, _]} = Message, Next, Anno, Context) -> info(info_triple, Message, Next, Anno, Context);
info({match, _, _, _} = Message, Next, Anno, Context) -> info(info, Message, Next, Anno, Context);
info({var, _, '_'}, Next, Anno, Context) -> {Next, [test(info, [{'M', Next}], Anno, Context)]};
info({var, _, _} = Message, _, Anno, Context) -> {Message, [test(info, [{'M', Message}], Anno, Context)]};
info(Message, _, _, _) -> {Message, []}.

info(Test, Message, Next, Anno, Context) ->
    {{match, Anno, Message, Next}, [test(Test, [{'M', Next}], Anno, Context)]}.

tests() ->
    maps:map(fun(_, Text) -> parse(Text) end,
             #{any_tag => ?ANY_TAG, tag_of => ?TAG_OF, info => ?INFO, info_pair => ?INFO_PAIR,
               info_triple => ?INFO_TRIPLE}).

parse(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, [Test]} = erl_parse:parse_exprs(Tokens),
    Test.

%% A test about these variables.
test(Name, Variables, Anno, #{tests := Tests}) ->
    erl_parse:map_anno(fun(_) -> Anno end, replace(map_get(Name, Tests), Variables)).

replace({var, _, Name}, Variables) ->
    {Name, Variable} = lists:keyfind(Name, 1, Variables),
    Variable;
replace(Expr, Variables) when is_tuple(Expr) -> list_to_tuple(replace(tuple_to_list(Expr), Variables));
replace([Head | Tail], Variables) -> [replace(Head, Variables) | replace(Tail, Variables)];
replace(Part, _) -> Part.

%% The message without its first argument if that is a tag. A message with a single argument has no `From`.
without_tag({call, Anno, Name, [{var, _, From}, Second | Others]} = Message, Tags) ->
    case lists:member(From, Tags) of
        true -> {call, Anno, Name, [Second | Others]};
        false -> Message
    end;
without_tag(Message, _) ->
    Message.

misused_tags(Exprs, Tags) ->
    case [Found || {Name, _} = Found <- witness_spec_pattern:occurrences(Exprs), lists:member(Name, Tags)] of
        [] ->
            ok;
        [{Name, Location} | _] ->
            throw(witness_spec_diagnostic:error(Location, message_pattern,
                [witness_spec_diagnostic:quote(atom_to_list(Name)), " stands for a call here: `over` has `reply(",
                 atom_to_list(Name), ", _)`"],
                "it can be the first argument of `call` and `reply` only; a reply does not name its caller"))
    end.

location(Expr) ->
    Anno = element(2, Expr),
    {erl_anno:line(Anno), erl_anno:column(Anno)}.
