-module(witness_weave_program).
-moduledoc """
Random programs: a tree that PropEr generates and shrinks, and the module that it stands for.

Every tree is a program that ends. Its processes say what they do, next to doing it, to `witness_weave_journal`. What a
program does is determined: a process takes messages that it has sent to itself, and those that it waits for.
""".
-include_lib("proper/include/proper.hrl").

-export([tree/0, source/1, forms/1]).

-define(J, "witness_weave_journal:").
-define(G, "witness_weave_generated").
-define(FUNCTIONS, 3).

%% --- trees -----------------------------------------------------------------------

-doc "The body of the first process, and of the functions that others call.".
tree() -> ?SIZED(Size, {block(Size), [block(Size div 3) || _ <- lists:seq(1, ?FUNCTIONS)]}).

block(Size) -> ?LAZY(frequency([{1, expr(Size)}, {5, {seq, expr(Size div 2), expr(Size - Size div 2)}}])).

expr(Size) when Size < 2 -> leaf();
expr(Size) ->
    Half = Size div 2,
    Third = Size div 3,
    ?LAZY(frequency([
        {1, leaf()},
        {1, {tuple, [expr(Half), expr(Half)]}},
        {1, {list, [expr(Half), expr(Half)]}},
        {1, {map, expr(Half), expr(Half)}},
        {1, {bin, expr(Half), expr(Half)}},
        {1, {add, expr(Half), expr(Half)}},
        {2, {eff, expr(Size - 1)}},
        {3, {seq, expr(Half), expr(Half)}},
        {2, {do, expr(Half), expr(Half)}},
        {6, {send, send_form(), to(Half), frequency([{2, expr(Half)}, {1, {eff, expr(Half)}}])}},
        {4, {recv, ?LET(N, choose(0, 2), vector(N, expr(Third))), clauses(Third), expr(Third), expr(Third)}},
        {3, {recv_sure, expr(Third), clauses(Third)}},
        {4, {spawn, spawn_form(), block(Half), expr(Half)}},
        {3, {'try', frequency([{2, expr(Half)}, {1, raise(Half)}]), oneof([none, expr(Third)]), handler(), expr(Third),
             frequency([{1, none}, {2, expr(Half)}])}},
        {1, {'catch', expr(Size - 1)}},
        {2, raise(Size)},
        {2, {'case', expr(Third), expr(Third), expr(Third)}},
        {1, {exporting, expr(Third), expr(Third), expr(Third), expr(Third)}},
        {1, {'if', expr(Third), expr(Third), expr(Third)}},
        {1, {'maybe', expr(Third), expr(Third), expr(Third), expr(Third)}},
        {2, {comprehension, oneof(comprehensions()), expr(Half), expr(Half)}},
        {1, {apply_fun, expr(Half), expr(Half)}},
        {1, {loop, choose(0, 3), expr(Half), expr(Half)}},
        {2, {fun_value, expr(Size - 1)}},
        {2, {call, oneof([local, remote, apply, dynamic, function]), choose(1, ?FUNCTIONS), expr(Size - 1)}},
        {1, {switch, oneof(["andalso", "orelse"]), expr(Half), expr(Half)}},
        {1, {record, expr(Half), expr(Half)}},
        {1, {dictionary, oneof([put, get, keys, all, erase]), expr(Size - 1)}}])).

leaf() -> oneof([{int, choose(0, 3)}, {atom, oneof([a, ok])}, {var, choose(0, 5)}, {var, choose(0, 5)}, self]).

raise(Size) -> {raise, oneof([throw, error, exit, badmatch, function_clause, case_clause, kill]), expr(Size - 1)}.

to(Size) -> frequency([{4, self}, {3, effect}, {3, parent}, {2, {var, choose(0, 5)}}, {1, bad},
                       {3, {eff_self, oneof([expr(Size - 1), {apply_fun, expr(Size div 2), leaf()}])}}]).

clauses(Size) -> ?LET(N, choose(1, 3), [{pattern(), guard(), expr(Size)} || _ <- lists:seq(1, N)]).

pattern() -> oneof([any, any, {lit, choose(0, 3)}, pair, {bound, choose(0, 5)}, whole, alias, map]).

guard() -> oneof([none, none, "is_integer(~s)", "~s > 1, ~s =/= 2; ~s =:= a"]).

handler() -> oneof(["throw:R", "error:R:S", "C:R:S", "exit:R", "_:R", "error:R"]).

send_form() ->
    oneof([bang, bang, bang, send, bang_function, imported, send3, nosuspend, apply, external, dynamic, dynamic_apply]).

%% What is spawned, the call, and what the result is.
spawn_form() ->
    oneof([{Kind, Call, Result} || {Kinds, Call, Result} <- spawns(), Kind <- Kinds]).

spawns() ->
    Funs = [named, anonymous],
    [{Funs, "spawn(~s)", pid}, {Funs, "spawn_link(~s)", pid}, {Funs, "erlang:spawn(node(), ~s)", pid},
     {Funs, "proc_lib:spawn(~s)", pid}, {Funs, "proc_lib:spawn_link(~s)", pid}, {Funs, "spawn_opt(~s, [link])", pid},
     {Funs, "apply(erlang, spawn, [~s])", pid}, {Funs, "(fun spawn/1)(~s)", pid},
     {Funs, "(" ?J "id(erlang)):spawn(~s)", pid}, {Funs, "spawn_monitor(~s)", monitored},
     {Funs, "erlang:spawn_opt(~s, [monitor, {priority, normal}])", monitored},
     {[mfa], "spawn(~s)", pid}, {[mfa], "erlang:spawn_link(~s)", pid}, {[mfa], "spawn(node(), ~s)", pid},
     {[mfa], "proc_lib:spawn(~s)", pid}, {[mfa], "proc_lib:spawn_link(~s)", pid},
     {[mfa], "apply(erlang, spawn_link, [~s])", pid}, {[mfa], "spawn_monitor(~s)", monitored},
     {[mfa], "spawn_opt(~s, [monitor])", monitored}, {[no_clause], "spawn_monitor(~s)", monitored},
     {[no_clause], "spawn(~s)", pid}].

comprehensions() ->
    ["[~s || ~s <- ~s]", "[~s || ~s <- ~s, " ?J "bool(~s)]", "[~s || ~s <- ~s, ~s > 0]", "#{~s => 1 || ~s <- ~s}",
     "<< <<(" ?J "byte(~s))>> || ~s <- ~s >>"]
        ++ case erlang:system_info(otp_release) >= "28" of
               true -> ["[~s || ~s <:- ~s]", "[~s || ~s <- ~s && _ <- [a, b, c]]"];
               false -> []
           end.

%% --- modules ---------------------------------------------------------------------

-doc "The module of a tree, called `witness_weave_generated`. Its first process runs `root/2`.".
source({Root, Functions}) ->
    Text = [process("root", Root, #{vars => ["X"], path => [0], level => 0}),
            [called(I, Body) || {I, Body} <- lists:enumerate(Functions)]],
    lists:flatten([
        "-module(witness_weave_generated).\n-compile([export_all, nowarn_export_all]).\n"
        "-import(erlang, [send_nosuspend/2]).\n"
        "-record(r, {a = " ?J "eff(default, 0), b = " ?J "sent(self() ! {s, 9})}).\n",
        body(Text), definitions(Text), "only_one(1) -> 1.\n"]).

-doc "The same as abstract code.".
forms(Tree) -> [{attribute, 1, file, {"witness_weave_generated.erl", 1}} | witness_weave_source:forms(source(Tree))].

%% Functions of processes stand where they are spawned, among the text.
body(Text) when is_list(Text) -> [body(Part) || Part <- Text];
body({definition, _}) -> "";
body(Text) -> Text.

definitions(Text) when is_list(Text) -> [definitions(Part) || Part <- Text];
definitions({definition, Text}) -> [body(Text), definitions(Text)];
definitions(_) -> [].

process(Name, Body, Env) ->
    [Name, "(Parent, X) when is_pid(Parent) ->\n    " ?J "born(Parent, {" ?G ", ", Name, ", [Parent, X]}),\n    ",
     text(Body, Env), ".\n"].

called(I, Body) ->
    ["f", integer_to_list(I), "(X) ->\n    ", text(Body, #{vars => ["X"], path => [I], level => I}), ".\n"].

%% The path of a node makes its names; no name is made twice.
name(Prefix, #{path := Path}) -> [Prefix | lists:join("_", [integer_to_list(I) || I <- Path])].

sub(I, Env = #{path := Path}) -> Env#{path := [I | Path]}.

bind(Var, Env = #{vars := Vars}) -> Env#{vars := [lists:flatten(Var) | Vars]}.

texts(Nodes, Env) -> lists:join(", ", [text(Node, sub(I, Env)) || {I, Node} <- lists:enumerate(Nodes)]).

%% --- expressions -----------------------------------------------------------------

text({int, N}, _) -> integer_to_list(N);
text({atom, Name}, _) -> atom_to_list(Name);
text({var, _}, #{vars := []}) -> "0";
text({var, I}, #{vars := Vars}) -> lists:nth(I rem length(Vars) + 1, Vars);
text(self, _) -> "self()";
text({tuple, Nodes}, Env) -> ["{", texts(Nodes, Env), "}"];
text({list, Nodes}, Env) -> ["[", texts(Nodes, Env), "]"];
text({map, Key, Value}, Env) -> ["#{", text(Key, sub(1, Env)), " => ", text(Value, sub(2, Env)), "}"];
text({bin, A, B}, Env) ->
    ["<<(" ?J "byte(", text(A, sub(1, Env)), ")), (" ?J "byte(", text(B, sub(2, Env)), ")):16>>"];
text({add, A, B}, Env) -> ["(" ?J "num(", text(A, sub(1, Env)), ")\n + " ?J "num(", text(B, sub(2, Env)), "))"];
text({eff, Node}, Env) -> [?J "eff(\"", name("", Env), "\", ", text(Node, sub(1, Env)), ")"];
text({seq, First, Rest}, Env) ->
    V = name("V", Env),
    ["begin\n", V, " = ", text(First, sub(1, Env)), ",\n", text(Rest, sub(2, bind(V, Env))), "\nend"];
text({do, First, Rest}, Env) ->
    ["begin ", text(First, sub(1, Env)), ",\n", text(Rest, sub(2, Env)), " end"];
text({send, Form, To, Node}, Env) -> send(Form, To, Node, Env);
text({recv, Before, Clauses, Timeout, After}, Env) ->
    ["begin ", [[send(bang, self, {tuple, [{atom, s}, Node]}, sub(I, sub(1, Env))), ",\n"]
                || {I, Node} <- lists:enumerate(Before)],
     "receive\n", clauses(Clauses, sub(2, Env)), "\nafter begin ", text(Timeout, sub(3, Env)), ", 0 end ->\n",
     text(After, sub(4, Env)), " end end"];
text({recv_sure, Node, Clauses}, Env) ->
    V = name("Z", Env),
    ["begin ", send(bang, self, {tuple, [{atom, s}, Node]}, sub(1, Env)), ",\nreceive\n", clauses(Clauses, sub(2, Env)),
     ";\n{s, ", V, "} -> " ?J "log({recv, {s, ", V, "}}), ", V, "\nend end"];
text({spawn, Form, Body, Rest}, Env) -> spawning(Form, Body, Rest, Env);
text({'try', Node, Of, Handler, Caught, After}, Env) ->
    [V, R, S, C] = [name(Prefix, Env) || Prefix <- ["V", "R", "S", "C"]],
    Pattern = [case Char of $R -> R; $S -> S; $C -> C; _ -> Char end || Char <- Handler],
    Bound = [Var || {Char, Var} <- [{$C, C}, {$R, R}, {$S, S}], lists:member(Char, Handler)],
    ["(try\n", text(Node, sub(1, Env)),
     case Of of
         none -> "";
         _ -> ["\nof ", V, " when ", V, " =/= 2 ->\n", text(Of, sub(2, bind(V, Env)))]
     end,
     "\ncatch\n", Pattern, " ->\n", V, " = {", lists:join(", ", Bound), "},\n", text(Caught, sub(3, bind(V, Env))),
     case After of
         none -> "";
         _ -> ["\nafter\n", text(After, sub(4, Env))]
     end, "\nend)"];
text({'catch', Node}, Env) -> [?J "caught(catch\n", text(Node, sub(1, Env)), ")"];
text({raise, badmatch, Node}, Env) -> ["({a, 1} = " ?J "id(", text(Node, sub(1, Env)), "))"];
text({raise, function_clause, Node}, Env) -> ["only_one(\n", text(Node, sub(1, Env)), ")"];
text({raise, case_clause, Node}, Env) -> ["case ", text(Node, sub(1, Env)), " of 77 -> 7 end"];
text({raise, kill, Node}, Env) -> ["begin ", text(Node, sub(1, Env)), ", exit(self(), kill) end"];
text({raise, Class, Node}, Env) -> [atom_to_list(Class), "(", text(Node, sub(1, Env)), ")"];
text({'case', Node, A, B}, Env) ->
    V = name("V", Env),
    ["case ", text(Node, sub(1, Env)), " of\n0 -> ", text(A, sub(2, Env)), ";\n{", V, ", _} when ", V, " =/= 1 -> ",
     text(B, sub(3, bind(V, Env))), ";\n", V, " -> ", text(B, sub(4, bind(V, Env))), "\nend"];
text({exporting, Node, A, B, Rest}, Env) ->
    V = name("V", Env),
    ["begin case ", text(Node, sub(1, Env)), " of\n0 -> ", V, " = ", text(A, sub(2, Env)), ";\n_ -> ", V, " = ",
     text(B, sub(3, Env)), " end,\n", text(Rest, sub(4, bind(V, Env))), " end"];
text({'if', Node, A, B}, Env) ->
    V = name("V", Env),
    ["begin ", V, " = ", text(Node, sub(1, Env)), ", if ", V, " > 1 -> ", text(A, sub(2, Env)), ";\ntrue -> ",
     text(B, sub(3, Env)), " end end"];
text({'maybe', Node, A, B, Else}, Env) ->
    [V, W] = [name(Prefix, Env) || Prefix <- ["V", "W"]],
    ["maybe\n{ok, ", V, "} ?= {ok, ", text(Node, sub(1, Env)), "},\n", W, " = ", text(A, sub(2, bind(V, Env))),
     ",\n{", V, ", 1} ?= {", W, ", 1},\n", text(B, sub(3, bind(W, bind(V, Env)))), "\nelse\n_ -> ",
     text(Else, sub(4, Env)), "\nend"];
text({comprehension, Shape, Node, List}, Env) ->
    V = name("V", Env),
    List1 = [?J "list(", text(List, sub(1, Env)), ")"],
    fill(Shape, [text(Node, sub(2, bind(V, Env))), V, List1, V]);
text({apply_fun, Body, Node}, Env) ->
    V = name("V", Env),
    ["(fun(", V, ") ->\n", text(Body, sub(1, bind(V, Env))), " end)(", text(Node, sub(2, Env)), ")"];
text({loop, Times, Body, Node}, Env) ->
    [L, N, V] = [name(Prefix, Env) || Prefix <- ["L", "N", "V"]],
    ["(fun ", L, "(0, ", V, ") -> ", V, ";\n", L, "(", N, ", ", V, ") ->\n", L, "(", N, " - 1, ",
     text(Body, sub(1, bind(N, bind(V, Env)))), ") end)(", integer_to_list(Times), ", ", text(Node, sub(2, Env)), ")"];
text({fun_value, Body}, Env) ->
    V = name("V", Env),
    ["fun(", V, ") -> ", text(Body, sub(1, bind(V, Env))), " end"];
%% A function calls those after it only, so that programs end.
text({call, _, I, Node}, Env = #{level := Level}) when I =< Level -> text(Node, sub(1, Env));
text({call, Form, I, Node}, Env) ->
    {F, Arg} = {["f", integer_to_list(I)], text(Node, sub(1, Env))},
    case Form of
        local -> [F, "(", Arg, ")"];
        remote -> [?G ":", F, "(", Arg, ")"];
        apply -> ["apply(" ?G ", ", F, ", [", Arg, "])"];
        dynamic -> ["(" ?J "id(" ?G ")):(" ?J "id(", F, "))(", Arg, ")"];
        function -> ["(fun ", F, "/1)(", Arg, ")"]
    end;
text({switch, Op, A, B}, Env) ->
    ["(" ?J "bool(", text(A, sub(1, Env)), ") ", Op, " ", text(B, sub(2, Env)), ")"];
text({record, A, B}, Env) ->
    ["{#r{a = ", text(A, sub(1, Env)), "}, #r{b = ", text(B, sub(2, Env)), "}}"];
text({dictionary, put, Node}, Env) -> ["put(k, ", text(Node, sub(1, Env)), ")"];
text({dictionary, What, Node}, Env) ->
    ["{", text(Node, sub(1, Env)), ", ",
     case What of
         get -> "get(k)";
         keys -> "lists:sort(get_keys())";
         all -> "lists:sort(get())";
         erase -> "lists:sort(erase())"
     end, "}"];
text(bad, _) -> "{no, process}";
text(effect, Env) -> [?J "eff(\"", name("", Env), "\", self())"];
text(parent, _) -> ?J "parent()";
text({eff_self, Node}, Env) -> ["begin ", text(Node, sub(1, Env)), ", self() end"].

%% Both arguments are evaluated in place; what was sent where is said when it has been.
send(Form, To, Node, Env) ->
    [V, D, M] = [name(Prefix, Env) || Prefix <- ["V", "D", "M"]],
    {To1, Msg} = {[D, " = ", text(To, sub(1, Env))], [M, " = ", text(Node, sub(2, Env))]},
    Args = [To1, ", ", Msg],
    ["begin ", V, " = ",
     case Form of
         bang -> ["((", To1, ") ! (", Msg, "))"];
         send -> ["erlang:send(", Args, ")"];
         bang_function -> ["erlang:'!'(", Args, ")"];
         imported -> ["send_nosuspend(", Args, ")"];
         send3 -> ["erlang:send(", Args, ", [])"];
         nosuspend -> ["erlang:send_nosuspend(", Args, ", [])"];
         apply -> ["apply(erlang, send, [", Args, "])"];
         external -> ["(fun erlang:send/2)(", Args, ")"];
         dynamic -> ["(" ?J "id(erlang)):send(", Args, ")"];
         dynamic_apply -> ["apply(" ?J "id(erlang), " ?J "id(send), " ?J "id([", Args, "]))"]
     end, ",\n" ?J "log({send, ", D, ", ", M, "}),\n", V, " end"].

%% The last argument of what is said is the message, made anew from what the clause has bound.
clauses(Clauses, Env) ->
    lists:join(";\n", [clause(Clause, sub(I, Env)) || {I, Clause} <- lists:enumerate(Clauses)]).

clause({Pattern, Guard, Body}, Env) ->
    [V, W, M] = [name(Prefix, Env) || Prefix <- ["V", "W", "M"]],
    {Text, Said, Tests, Bound} = case Pattern of
        any -> {["{s, ", V, "}"], ["{s, ", V, "}"], [], [V]};
        {lit, N} -> {["{s, ", integer_to_list(N), "}"], ["{s, ", integer_to_list(N), "}"], [], []};
        pair -> {["{s, {", V, ", ", W, "}}"], ["{s, {", V, ", ", W, "}}"], [], [V, W]};
        {bound, I} ->
            Old = text({var, I}, Env),
            {["{s, ", Old, "}"], ["{s, ", Old, "}"], [], []};
        whole -> {M, M, ["element(1, ", M, ") =:= s, element(2, ", M, ") =/= 3"], [M]};
        alias -> {[M, " = {s, ", V, "}"], M, [], [M, V]};
        map -> {["{s, #{0 := ", V, "}} = ", M], M, [], [M, V]}
    end,
    [Text, guard([Tests || Tests =/= []] ++ [fill(Guard, [hd(Bound), hd(Bound), hd(Bound)]) || Guard =/= none, Bound =/= [],
                                                                                               Tests =:= []]),
     " ->\n" ?J "log({recv, ", Said, "}),\n", text(Body, sub(1, lists:foldl(fun bind/2, Env, Bound)))].

guard([]) -> "";
guard(Tests) -> [" when ", lists:join(", ", Tests)].

spawning({Kind, Call, Result}, Body, Rest, Env) ->
    [P, R, F, Me, V] = [name(Prefix, Env) || Prefix <- ["P", "R", "F", "Me", "V"]],
    Name = name("p", Env),
    {Prepare, Args, Signature, Definition} = case Kind of
        named ->
            Self = name("Self", Env),
            Fun = ["fun ", Self, "() -> " ?J "born(", Me, ", ", Self, "),\n", text(Body, sub(1, Env)), " end"],
            {[F, " = ", Fun, ",\n"], F, F, ""};
        anonymous ->
            Fun = ["fun() -> " ?J "born(", Me, ", any),\n", text(Body, sub(1, Env)), " end"],
            {"", [F, " = ", Fun], F, ""};
        mfa ->
            MFA = ["" ?G ", ", Name, ", [", Me, ", ", text({var, 0}, Env), "]"],
            {"", MFA, ["{", MFA, "}"], {definition, process(Name, Body, (sub(1, Env))#{vars := ["X"]})}};
        no_clause ->
            MFA = ["" ?G ", ", Name, ", [no_pid, ", Me, "]"],
            {"", MFA, ["{", MFA, "}"], {definition, process(Name, Body, (sub(1, Env))#{vars := ["X"]})}}
    end,
    ["begin ", Me, " = self(),\n", Prepare,
     case Result of
         pid -> [P, " = ", fill(Call, [Args]), ",\n" ?J "forked(", P, ", ", Signature, ", 0),\n"];
         monitored ->
             Down = ["{'DOWN', ", R, ", process, ", P, ", ", V, "}"],
             ["{", P, ", ", R, "} = ", fill(Call, [Args]), ",\n" ?J "forked(", P, ", ", Signature, ", 0),\nreceive ", Down,
              " -> " ?J "log({recv, ", Down, "}) end,\n"]
     end,
     text(Rest, sub(2, lists:foldl(fun bind/2, Env, [P] ++ [V || Result =:= monitored]))), " end", Definition].

fill(Shape, []) -> Shape;
fill(Shape, [Text | Texts]) ->
    case string:split(Shape, "~s") of
        [Before, After] -> [Before, Text | fill(After, Texts)];
        [_] -> Shape
    end.
