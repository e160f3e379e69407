-module(witness_cli_call_elixir).
-moduledoc """
Reads a call in the notation of Elixir: `MyApp.Server.run("a", :b, nil, Foo.Bar, %{a: 1}, [b: 2], ~c"text", &M.f/1)`.

Several calls have semicolons between them.

Elixir's own parser reads it, which evaluates nothing. Only terms pass: numbers, atoms, modules, strings, the sigils `~c` and `~s`,
lists, keywords, tuples, maps, binaries of bytes, and `&M.f/1`.
""".

-export([is_call/1, parse/1, parse_term/1]).

-define(TERMS, "terms of Elixir with commas between them are expected").

-doc "Whether the text begins as a call of a function of Elixir with arguments: behind a full stop, as Elixir writes it.".
-spec is_call(string()) -> boolean().
is_call(Text) ->
    re:run(Text, "^\\s*[A-Z]\\w*(\\.[A-Z]\\w*)*\\.[a-z_]\\w*[!?]?\\((?!\\s*\\)\\s*$)", [unicode, {capture, none}]) =:= match.

-doc "The calls, or the column of what is wrong. Elixir must be on the code path, and started.".
-spec parse(string()) -> {ok, [{module(), atom(), [term()]}, ...]} | {problem, pos_integer(), unicode:chardata()}.
parse(Text) -> quoted(Text, fun calls/1).

-doc "The term, or the column of what is wrong.".
-spec parse_term(string()) -> {ok, term()} | {problem, pos_integer(), unicode:chardata()}.
parse_term(Text) -> quoted(Text, fun value/1).

quoted(Text, Read) ->
    case elixir("Code", string_to_quoted, [unicode:characters_to_binary(Text), [{columns, true}, {emit_warnings, false}]]) of
        {ok, Quoted} ->
            try
                {ok, Read(Quoted)}
            catch
                throw:{problem, Place, Problem} -> {problem, column(Place), Problem}
            end;
        {error, {Place, Problem, Token}} ->
            {problem, proplists:get_value(end_column, Place, proplists:get_value(column, Place, 1)), syntax_error(Problem, Token)}
    end.

%% Elixir explains some errors on several lines; its message may have a part before the token and one behind it.
syntax_error({Before, After}, Token) -> syntax_error([Before, Token, After], ~"");
syntax_error(Problem, Token) ->
    [Line | _] = string:split(unicode:characters_to_binary([Problem, Token]), "\n"),
    [witness_text:clean(Line), ~": ", ?TERMS].

calls({'__block__', _, [_ | _] = Calls}) -> [call(Call) || Call <- Calls];
calls(Call) -> [call(Call)].

call({{'.', _, [{'__aliases__', _, _} = Module, Function]}, _, Arguments}) when is_atom(Function) ->
    {value(Module), Function, [value(Argument) || Argument <- Arguments]};
call(Quoted) -> throw({problem, Quoted, ~"a call is expected, as in MyApp.Server.run(1)"}).

value(Literal) when is_atom(Literal); is_number(Literal); is_binary(Literal) -> Literal;
value([]) -> [];
value([{'|', _, [Last, Tail]}]) -> [value(Last) | value(Tail)];
value([Head | Tail]) -> [value(Head) | value(Tail)];
value({First, Second}) -> {value(First), value(Second)};
value({'{}', _, Elements}) -> list_to_tuple([value(Element) || Element <- Elements]);
value({'%{}', _, Pairs} = Map) -> maps:from_list([pair(Pair, Map) || Pair <- Pairs]);
value({'__aliases__', _, Parts} = Module) ->
    lists:all(fun is_atom/1, Parts) orelse no_term(Module),
    Names = [atom_to_list(Part) || Part <- Parts, Part =/= 'Elixir'],
    list_to_atom(lists:append(lists:join(".", ["Elixir" | Names])));
value({'-', _, [Number]}) when is_number(Number) -> -Number;
value({'+', _, [Number]}) when is_number(Number) -> Number;
value({'<<>>', _, Segments} = Bits) -> iolist_to_binary([segment(Segment, Bits) || Segment <- Segments]);
value({sigil_c, _, [_, _]} = Sigil) -> unicode:characters_to_list(unescaped(Sigil));
value({sigil_s, _, [_, _]} = Sigil) -> unescaped(Sigil);
value({'&', _, [{'/', _, [{{'.', _, [Module, Function]}, _, []}, Arity]}]} = Capture) ->
    case value(Module) of
        Name when is_atom(Name), is_atom(Function), is_integer(Arity), Arity >= 0, Arity =< 255 -> fun Name:Function/Arity;
        _ -> no_term(Capture)
    end;
value(Quoted) -> no_term(Quoted).

pair({Key, Value}, _) -> {value(Key), value(Value)};
pair(_, Map) -> no_term(Map).

segment(Byte, _) when is_integer(Byte), Byte >= 0, Byte =< 255 -> Byte;
segment(Text, _) when is_binary(Text) -> Text;
segment(_, Bits) -> no_term(Bits).

unescaped({_, _, [{'<<>>', _, [Text]}, []]} = Sigil) when is_binary(Text) ->
    try
        elixir("Macro", unescape_string, [Text])
    catch
        error:_ -> no_term(Sigil)
    end;
unescaped(Sigil) -> no_term(Sigil).

-spec no_term(term()) -> no_return().
no_term(Quoted) ->
    throw({problem, Quoted, ~"only terms are allowed here: no variables, calls or operators (an atom is :a, text is \"a\")"}).

%% Elixir is not there when Witness is checked.
elixir(Module, Function, Arguments) -> apply(list_to_atom("Elixir." ++ Module), Function, Arguments).

%% The position of an operation is that of its operator, so its leftmost part gives the start of the expression.
column(Quoted) -> lists:min([1_000_000 | columns(Quoted)]).

columns({Form, Meta, Arguments}) when is_list(Meta) ->
    [Column || {column, Column} <- Meta] ++ columns(Form) ++ columns(Arguments);
columns({First, Second}) -> columns(First) ++ columns(Second);
columns([First | Rest]) -> columns(First) ++ columns(Rest);
columns(_) -> [].
