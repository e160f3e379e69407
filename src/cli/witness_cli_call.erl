-module(witness_cli_call).
-moduledoc """
Parses Erlang notation on the command line: the function to run, and the functions to monitor.

| Written | Meaning |
|---|---|
| `calc:start()`, `calc:start` | call `calc:start/0` |
| `calc:start(10, [{name, "a"}])` | arguments are Erlang terms; nothing in them is evaluated |
| `MyApp.Server.run("a", :b, [c: 1])` | a function of an Elixir module: arguments are terms of Elixir (`m:witness_cli_call_elixir`) |
| `MyApp.Server.run(1); MyApp.Server.stop()` | several such calls, in turn, in one process |
| `calc_server:loop/1=no_crash` | every process spawned with `calc_server:loop/1` is monitored by the module `no_crash` |
| `calc_server:loop/_=m`, `calc_server:_/_=m`, `_:_/_=m` | the same for any arity, function, module |
| `calc_server:loop/1=no_crash(30)` | with the argument `30` for the callback `init/3`; without it the argument is `[]` |

## Errors

Each error is text for people. A syntax error shows the text and marks the place with a caret:

```
unexpected '2': arguments are separated by commas
  calc:start(1 2)
               ^
```
""".

-export([parse/1, parse_term/2, parse_application/1, parse_weave/1, check/1, parse_monitor/1, signatures/1, signatures/2]).

-export_type([pattern/0, mfa_call/0]).

-doc "A function with its arguments.".
-type mfa_call() :: {module(), Function :: atom(), Args :: [term()]}.

-doc "Signatures to monitor: `'_'` means any.".
-type pattern() :: {module() | '_', Function :: atom() | '_', arity() | '_'}.

-define(MAX_CHARS, 20_000).

-doc """
The call that the text means.

Elixir is loaded for arguments in its notation. Those that are no terms of Elixir may be terms of Erlang.
""".
-spec parse(string()) -> {ok, mfa_call()} | {error, unicode:chardata()}.
parse(Text) ->
    case length(Text) =< ?MAX_CHARS andalso witness_cli_call_elixir:is_call(Text) of
        true -> parse_elixir(Text);
        false -> parse_erlang(Text)
    end.

parse_elixir(Text) ->
    case witness_cli_setup:load_elixir('Elixir.Code', []) of
        ok ->
            maybe
                {problem, Column, Problem} ?= witness_cli_call_elixir:parse(Text),
                {error, _} ?= parse_erlang(Text),
                {error, point_at(Text, Column, Problem)}
            else
                {ok, [Call]} -> {ok, Call};
                {ok, [_ | _] = Calls} -> {ok, in_turn(Calls)};
                {ok, Call} -> {ok, Call}
            end;
        {error, _} = Error -> Error
    end.

%% The process of several calls evaluates them: it runs a function of OTP, so it is none of Witness's own. Arguments are values of
%% variables, since not every term has a form.
in_turn(Calls) ->
    Numbered = lists:enumerate([{{M, F, length(Args)}, lists:enumerate(Args)} || {M, F, Args} <- Calls]),
    Name = fun(N, I) -> list_to_atom(lists:append(["Argument", integer_to_list(N), "_", integer_to_list(I)])) end,
    {erl_eval, exprs, [[{call, 1, {remote, 1, {atom, 1, M}, {atom, 1, F}}, [{var, 1, Name(N, I)} || {I, _} <- Args]}
                        || {N, {{M, F, _}, Args}} <- Numbered],
                       #{Name(N, I) => Arg || {N, {_, Args}} <- Numbered, {I, Arg} <- Args}]}.

parse_erlang(Text) ->
    parsing(Text, fun(Tokens) ->
        {Module, Function, Rest} = name(Tokens),
        Module =/= '_' andalso Function =/= '_' orelse
            throw({problem, 1, ~"one function is expected here, not any (_)"}),
        {Module, Function, arguments(Rest)}
    end).

-doc "The term that the text is, in the notation of a module's language. A term that is none of Elixir may be one of Erlang.".
-spec parse_term(string(), module()) -> {ok, term()} | {error, unicode:chardata()}.
parse_term(Text, Module) ->
    case length(Text) =< ?MAX_CHARS andalso atom_to_list(Module) of
        "Elixir." ++ _ -> parse_elixir_term(Text);
        _ -> parse_erlang_term(Text)
    end.

parse_elixir_term(Text) ->
    case witness_cli_setup:load_elixir('Elixir.Code', []) of
        ok ->
            maybe
                {problem, Column, Problem} ?= witness_cli_call_elixir:parse_term(Text),
                {error, _} ?= parse_erlang_term(Text),
                {error, point_at(Text, Column, Problem)}
            end;
        {error, _} = Error -> Error
    end.

parse_erlang_term(Text) ->
    parsing(Text, fun(Tokens) ->
        {Inner, [{'end', End}]} = lists:split(length(Tokens) - 1, Tokens),
        case terms([{'[', {1, 1}} | Inner] ++ [{']', End}, {dot, End}]) of
            [Term] -> Term;
            [_ | _] -> throw({problem, 1, ~"one term is expected here"})
        end
    end).

-doc "The application that the text names.".
-spec parse_application(string()) -> {ok, {application, atom()}} | {error, unicode:chardata()}.
parse_application(Text) ->
    case Text =/= "" andalso length(Text) =< 255 of
        true -> {ok, {application, list_to_atom(Text)}};
        false -> {error, ~"--app: the name of an application is expected"}
    end.

-doc "The module, or the application, that the text names.".
-spec parse_weave(string()) -> {ok, module() | {application, atom()}} | {error, unicode:chardata()}.
parse_weave("app:" ++ [_ | _] = Text) when length(Text) =< 255 -> {ok, {application, list_to_atom(lists:nthtail(4, Text))}};
parse_weave([First | _] = Text) when length(Text) =< 200 ->
    %% An Elixir module, as it is written in Elixir.
    {ok, list_to_atom(case First >= $A andalso First =< $Z andalso not lists:prefix("Elixir.", Text) of
                          true -> "Elixir." ++ Text;
                          false -> Text
                      end)};
parse_weave(_) -> {error, ~"the name of a module is expected, or app:NAME"}.

-doc "The signatures in the text, and the monitor with its argument.".
-spec parse_monitor(string()) -> {ok, {pattern(), {module(), Arg :: term()}}} | {error, unicode:chardata()}.
parse_monitor(Text) ->
    parsing(Text, fun(Tokens) ->
        {Module, Function, Rest} = name(Tokens),
        {Arity, Monitor, Argument} = monitor(Rest),
        {{Module, Function, Arity}, {Monitor, Argument}}
    end).

-doc "The rows for signatures (`m:witness_event_wrapper`) that the options name, if they name any.".
-spec signatures(#{signatures => [string()], _ => _}) ->
    {ok, #{signatures => [witness_event_wrapper:row()]}} | {error, unicode:chardata()}.
signatures(#{signatures := Texts}) -> parse_signatures(Texts, []);
signatures(#{}) -> {ok, #{}}.

-doc """
The rows for signatures that the arguments name, or else those that the program is configured with: by `--config`, or by its project of
Mix.
""".
-spec signatures(#{signatures => [string()], config => file:filename(), _ => _},
                 #{environment => [{atom(), [{atom(), term()}]}], _ => _}) ->
    {ok, #{signatures => [witness_event_wrapper:row()] | term()}} | {error, unicode:chardata()}.
signatures(#{signatures := _} = Options, _) -> signatures(Options);
signatures(Options, Mix) ->
    maybe
        {ok, Config} ?= case Options of #{config := File} -> witness_cli_setup:read_config(File); #{} -> {ok, []} end,
        Rows = [Rows || Environment <- [Config, maps:get(environment, Mix, [])],
                        {signatures, Rows} <- proplists:get_value(witness, Environment, [])],
        {ok, case Rows of [] -> #{}; _ -> #{signatures => lists:last(Rows)} end}
    end.

parse_signatures([Text | Texts], Rows) ->
    maybe
        {ok, Row} ?= parse(Text),
        {ok, _} ?= witness_event_wrapper:table([Row]),
        parse_signatures(Texts, [Row | Rows])
    else
        {error, {witness_event_wrapper, _} = Error} -> {error, witness_cli_options:name_option(witness:format_error(Error))};
        {error, Why} -> {error, [~"--signature: ", Why]}
    end;
parse_signatures([], Rows) -> {ok, #{signatures => lists:reverse(Rows)}}.

-doc """
Whether the function exists. Loads the module.

An error lists the arities that exist, or names that are similar.
""".
-spec check(mfa_call()) -> ok | {error, unicode:chardata()}.
check({erl_eval, exprs, [[{call, 1, {remote, 1, {atom, 1, Module}, {atom, 1, Function}}, Args} | Calls], Bindings]}) ->
    maybe
        ok ?= check({Module, Function, Args}),
        check({erl_eval, exprs, [Calls, Bindings]})
    end;
check({Module, Function, Args}) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> exported(Module, Function, length(Args));
        {error, nofile} ->
            {error, [~"there is no module ", name_of(Module), ~" on the code path: name its folder with --pa DIR"]};
        {error, Reason} ->
            {error, [~"the module ", name_of(Module), ~" cannot be loaded: ", term(Reason)]}
    end.

%% Names and syntax

%% A problem is thrown with its column, and turned into text in one place.
parsing(Text, Read) ->
    try
        length(Text) =< ?MAX_CHARS orelse throw({problem, 1, ~"this is too long"}),
        {ok, Read(tokens(Text))}
    catch
        throw:{problem, Column, Problem} -> {error, point_at(Text, Column, Problem)}
    end.

tokens(Text) ->
    case erl_scan:string(Text, {1, 1}) of
        {ok, [], _} -> throw({problem, 1, ~"a function was expected: mod:fun(args)"});
        {ok, Tokens, {_, Column}} -> [undotted(Token) || Token <- Tokens] ++ [{'end', {1, Column}}];
        {error, {{_, Column}, erl_scan, Problem}, _} -> throw({problem, Column, erl_scan:format_error(Problem)})
    end.

%% The scanner reads a full stop before white space as the end of a form.
undotted({dot, Place}) -> {'.', Place};
undotted(Token) -> Token.

%% Module and function, in the notation of either language, and the remaining tokens.
name([{atom, _, Module}, {':', _} | Rest]) -> function(Module, Rest);
name([{var, _, '_'}, {':', _} | Rest]) -> function('_', Rest);
name([{var, _, _} = First | Rest]) -> elixir([First], Rest);
name([{atom, _, _}, Next | _]) -> unexpected(Next, ~"a colon and the name of a function are expected here, mod:fun(args)");
name([Token | _]) -> unexpected(Token, ~"the name of a module is expected here, as in mod:fun(args)").

elixir(Parts, [{'.', _}, {var, _, _} = Part | Rest]) -> elixir([Part | Parts], Rest);
elixir(Parts, [{'.', _}, {atom, _, _} = Function | Rest]) -> function(module(Parts), [Function | Rest]);
elixir(Parts, [{':', _} | Rest]) -> function(module(Parts), Rest);
elixir(_, [Token | _]) -> unexpected(Token, ~"a full stop and a name are expected here, as in MyApp.Server.run(1)").

module(Parts) ->
    Names = [atom_to_list(Part) || {var, _, Part} <- lists:reverse(Parts)],
    list_to_atom(lists:flatten(lists:join(".", ["Elixir" | Names]))).

%% Functions of Elixir may end in ! or ?.
function(Module, [{atom, {_, Column}, Function}, {Mark, {_, Next}} | Rest] = Tokens) when Mark =:= '!'; Mark =:= '?' ->
    case Next =:= Column + length(atom_to_list(Function)) of
        true -> {Module, list_to_atom(atom_to_list(Function) ++ atom_to_list(Mark)), Rest};
        false -> {Module, Function, tl(Tokens)}
    end;
function(Module, [{atom, _, Function} | Rest]) -> {Module, Function, Rest};
function(Module, [{var, _, '_'} | Rest]) -> {Module, '_', Rest};
function(_, [Token | _]) -> unexpected(Token, ~"the name of a function is expected here").

arguments([{'end', _}]) -> [];
arguments([{'(', Open} | Rest]) ->
    {Inner, Close} = enclosed(Rest),
    terms([{'[', Open} | Inner] ++ [{']', Close}, {dot, Close}]);
arguments([Token | _]) -> unexpected(Token, ~"the arguments are expected here, in parentheses").

%% The tokens before the closing parenthesis, which must be the last token.
enclosed(Tokens) ->
    case lists:reverse(Tokens) of
        [{'end', _}, {')', Close} | Inner] -> {lists:reverse(Inner), Close};
        [{'end', _} = End | _] -> unexpected(End, ~"a closing parenthesis is expected at the end")
    end.

terms(Tokens) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, [List]} -> [value(Element) || Element <- elements(List)];
        {error, {{_, Column}, erl_parse, Problem}} -> throw({problem, Column, erl_parse:format_error(Problem)})
    end.

elements({cons, _, Head, Tail}) -> [Head | elements(Tail)];
elements({nil, _}) -> [];
elements(Tail) -> throw({problem, column(Tail), ~"a comma is expected between arguments"}).

%% A term, never an expression: nothing is evaluated.
value(Expression) ->
    try
        erl_parse:normalise(Expression)
    catch
        error:_ ->
            Text = ~"only terms are allowed here: no variables, calls or operators (quote text: \"a\", 'a')",
            throw({problem, column(Expression), Text})
    end.

%% The position of an operation is that of its operator, so its leftmost part gives the start of the expression.
column(Expression) -> lists:min(columns(Expression)).

columns({Line, Column}) when is_integer(Line), is_integer(Column) -> [Column];
columns(Parts) when is_tuple(Parts) -> columns(tuple_to_list(Parts));
columns([First | Rest]) -> columns(First) ++ columns(Rest);
columns(_) -> [].

monitor([{'/', _}, Arity, {'=', _}, {atom, _, Module} | Rest]) -> {arity(Arity), Module, argument(Rest)};
monitor([{'/', _}, Arity, {'=', _} | [{var, _, _} | _] = Rest]) ->
    {Module, Argument} = elixir_monitor([], Rest),
    {arity(Arity), Module, Argument};
monitor([{'/', _}, Arity, {'=', _}, Token | _]) ->
    _ = arity(Arity),
    unexpected(Token, ~"the module of a monitor is expected here");
monitor([{'/', _}, Arity, Token | _]) ->
    _ = arity(Arity),
    unexpected(Token, ~"= and the module of a monitor are expected here");
monitor([Token | _]) ->
    unexpected(Token, ~"/ and an arity are expected here, as in calc_server:loop/1=my_monitor or calc_server:loop/_=my_monitor").

elixir_monitor(Parts, [{var, _, _} = Part, {'.', _} | Rest]) -> elixir_monitor([Part | Parts], Rest);
elixir_monitor(Parts, [{var, _, _} = Part | Rest]) -> {module([Part | Parts]), argument(Rest)};
elixir_monitor(_, [Token | _]) -> unexpected(Token, ~"the module of a monitor is expected here").

argument(Rest) ->
    case arguments(Rest) of
        [] -> [];
        [Argument] -> Argument;
        [_ | _] -> unexpected(hd(Rest), ~"a monitor takes one argument")
    end.

arity({integer, _, Arity}) when Arity =< 255 -> Arity;
arity({var, _, '_'}) -> '_';
arity(Token) -> unexpected(Token, ~"an arity is expected here, or _").

-spec unexpected(tuple(), unicode:chardata()) -> no_return().
unexpected(Token, Problem) ->
    {_, Column} = element(2, Token),
    throw({problem, Column, Problem}).

point_at(Text, Column, Problem) ->
    [Problem, ~"\n  ", witness_text:clean(Text), ~"\n  ", lists:duplicate(Column - 1, $\s), ~"^"].

%% Existence

exported(Module, Function, Arity) ->
    Exports = Module:module_info(exports),
    case lists:member({Function, Arity}, Exports) of
        true -> ok;
        false -> {error, absent(Module, Function, Arity, Exports)}
    end.

absent(Module, Function, Arity, Exports) ->
    Absent = io_lib:format("~ts does not export ~ts/~w", [name_of(Module), name_of(Function), Arity]),
    case lists:sort([Other || {Name, Other} <- Exports, Name =:= Function]) of
        [] -> [Absent, suggestion(Function, Exports)];
        Arities ->
            [Absent, ~": it exports ",
             witness_text:list([io_lib:format("~ts/~w", [name_of(Function), Other]) || Other <- Arities])]
    end.

suggestion(Function, Exports) ->
    Written = atom_to_list(Function),
    Names = [{string:jaro_similarity(Written, atom_to_list(Name)), Name, Arity} || {Name, Arity} <- Exports],
    Similar = [Export || {Likeness, _, _} = Export <- Names, Likeness > 0.7],
    case lists:reverse(lists:sort(Similar)) of
        [] -> ~"";
        Best ->
            Few = [io_lib:format("~ts/~w", [name_of(Name), Arity]) || {_, Name, Arity} <- lists:sublist(Best, 3)],
            [~"; did you mean ", lists:join(~" or ", Few), ~"?"]
    end.

name_of(Atom) ->
    case atom_to_binary(Atom) of
        <<"Elixir.", Name/binary>> -> witness_text:clean(Name);
        _ -> term(Atom)
    end.

term(Term) -> witness_event:format_term(Term, 200).
