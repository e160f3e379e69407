-module(witness_test_search).
-moduledoc """
A search as a part of a test (`witness_test:search/3`): what can run in its VM, with which code, and what the test says if a schedule fails.
""".

-export([search/3, search/4, format_error/1]).

-export_type([searched/0, reason/0, code/0]).

-doc """
Modules of this VM that have no file, and applications: their code is searched, too. `tool`: how the user calls the commands of Witness.
""".
-type code() :: #{modules => #{module() => binary()}, applications => [atom()], tool => witness | mix}.

-doc "An exported function with its arguments, or a function without arguments, as `fun scenario/0`, which need not be exported.".
-type searched() :: {module(), atom(), [term()]} | fun(() -> term()).

-doc """
- `fun_of_module`: a fun that is none of a function of its module;
- `argument`: a term of the arguments that means nothing in another VM;
- `no_module`: the module is not loaded from a file; `not_exported`: it does not have the function;
- `monitor`: a monitor among the specifications; `own`: an option that the test itself determines.
""".
-type reason() :: fun_of_module | {argument, term()} | {no_module, module()} | {not_exported, mfa()} | monitor | {own, atom()}
                | {function, term()}.

-define(LOOK, #{colour => false, width => 100}).
%% Violations that are shown in full.
-define(MAX_CHARTS, 3).

-doc "Searches; the outcome of the test, and warnings.".
-spec search(witness_test:specs(), searched(), map()) -> {witness_test:outcome(), Warnings :: [binary()]}.
search(Specs, What, Given) -> search(Specs, What, Given, #{}).

-doc "The same, with more code.".
-spec search(witness_test:specs(), searched(), map(), code()) -> {witness_test:outcome(), Warnings :: [binary()]}.
search(Specs, Named, Given, Code) ->
    {What, Modules} = with_export(Named, maps:get(modules, Code, #{})),
    Dir = written(Modules),
    try
        More = [filename:join(Folder, "ebin") || App <- maps:get(applications, Code, []), Folder <- [code:lib_dir(App)], is_list(Folder)],
        searched(Specs, What, Given, [Dir || Modules =/= #{}] ++ More, maps:with([tool], Code))
    after
        ok = remove(Dir, Modules)
    end.

%% `fun scenario/0' is a function of its module. The module of the search exports it, and is otherwise the same.
with_export(Fun, Modules) when is_function(Fun, 0) ->
    maybe
        {type, local} ?= erlang:fun_info(Fun, type),
        {module, Module} = erlang:fun_info(Fun, module),
        false ?= is_map_key(Module, Modules),
        {ok, Forms, Options} ?= witness_weave:forms(Module),
        [Name] ?= [Name || {function, _, Name, 0, _} <- Forms, is_fun_of(Name, Fun)],
        {ok, Module, Beam} ?= compile:noenv_forms(exporting(Name, Forms), [debug_info | Options]),
        {{exported, {Module, Name, []}}, Modules#{Module => Beam}}
    else
        _ -> {Fun, Modules}
    end;
with_export(What, Modules) -> {What, Modules}.

%% Until OTP 27 the compiler makes a function of its own for it.
is_fun_of(Name, Fun) ->
    {name, Given} = erlang:fun_info(Fun, name),
    {env, Env} = erlang:fun_info(Fun, env),
    Env =:= [] andalso lists:member(atom_to_list(Given), [atom_to_list(Name), "-fun." ++ atom_to_list(Name) ++ "/0-"]).

exporting(Name, Forms) ->
    lists:append([case Form of
        {attribute, Anno, module, _} -> [Form, {attribute, Anno, export, [{Name, 0}]}];
        _ -> [Form]
    end || Form <- Forms]).

%% A folder of this account alone, for the time of the search: a recording keeps the code of its program.
written(Modules) ->
    Name = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    Dir = filename:join([filename:dirname(witness_weave_cache:default_dir()), "tests", Name]),
    [begin
         File = file(Module, Dir),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Beam)
     end || Module := Beam <- Modules],
    Dir.

file(Module, Dir) -> filename:join(Dir, atom_to_list(Module) ++ ".beam").

remove(Dir, Modules) ->
    [_ = file:delete(file(Module, Dir)) || Module := _ <- Modules],
    _ = file:del_dir(Dir),
    ok.

searched(Specs, What, Given, More, Tool) ->
    maybe
        [] ?= [Name || Name <- [run, specs, all, schedule], is_map_key(Name, Given)],
        {ok, Run = {Module, _, _}} ?= run(What),
        Own = maps:with([base, unmonitored, vacuous], Given),
        ok ?= witness_option:check(Own, witness_option_schema:test()),
        {ok, Names} ?= files(Specs),
        {ok, Files} ?= witness_test_files:find(Names, maps:get(base, Own, folder(Module))),
        {ok, Folders} ?= folders(Run, Given, More),
        Options = maps:merge(#{dir => new_name(), environment => environment()}, maps:without([base, unmonitored, vacuous], Given)),
        {ok, Report} ?= witness_search:search(Options#{run => Run, specs => Files, pa => Folders}),
        Rules = maps:merge(#{unmonitored => fail, vacuous => warn}, maps:with([unmonitored, vacuous], Own)),
        judge(Report, maps:merge(Options, maps:merge(Tool#{specs => Files}, Rules)))
    else
        [Option | _] -> refused({?MODULE, {own, Option}});
        {error, {witness_search, {exists, _}} = Error} -> refused(Error);
        {error, {witness_search, {generator, _, _}} = Error} -> refused(Error);
        {error, {witness_search, _} = Error} -> {{failed, no_result, lines(witness:format_error(Error))}, []};
        {error, Error} -> refused(Error)
    end.

refused(Error) -> {{failed, not_started, lines(witness:format_error(Error))}, []}.

lines(Text) -> witness_test_result:lines(Text).

%% --- what runs -------------------------------------------------------------------

run({exported, Run}) -> {ok, Run};
run({Module, Function, Args} = Run) when is_atom(Module), is_atom(Function), is_list(Args) ->
    _ = code:ensure_loaded(Module),
    case {[Term || Arg <- Args, Term <- of_this_vm(Arg)], erlang:function_exported(Module, Function, length(Args))} of
        {[], true} -> {ok, Run};
        {[], false} -> {error, {?MODULE, {not_exported, {Module, Function, length(Args)}}}};
        {[Term | _], _} -> {error, {?MODULE, {argument, Term}}}
    end;
run(Fun) when is_function(Fun, 0) ->
    case erlang:fun_info(Fun, type) of
        {type, external} ->
            {module, Module} = erlang:fun_info(Fun, module),
            {name, Name} = erlang:fun_info(Fun, name),
            run({Module, Name, []});
        {type, local} -> {error, {?MODULE, fun_of_module}}
    end;
run(Other) -> {error, {?MODULE, {function, Other}}}.

%% The first term in it that is something of this VM.
of_this_vm(Term) when is_pid(Term); is_port(Term); is_reference(Term) -> [Term];
of_this_vm(Fun) when is_function(Fun) -> [Fun || erlang:fun_info(Fun, type) =:= {type, local}];
of_this_vm([Head | Tail]) ->
    case of_this_vm(Head) of
        [] -> of_this_vm(Tail);
        Found -> Found
    end;
of_this_vm(Tuple) when is_tuple(Tuple) -> of_this_vm(tuple_to_list(Tuple));
of_this_vm(Map) when is_map(Map) -> of_this_vm(maps:to_list(Map));
of_this_vm(_) -> [].

files(Specs) when is_binary(Specs); is_tuple(Specs) -> files([Specs]);
files(Specs) ->
    case io_lib:char_list(Specs) andalso Specs =/= [] of
        true -> {ok, [Specs]};
        false ->
            case lists:any(fun is_tuple/1, Specs) of
                true -> {error, {?MODULE, monitor}};
                false -> {ok, Specs}
            end
    end.

folder(Module) ->
    case witness_test_files:source_file(Module) of
        "" -> undefined;
        File -> filename:dirname(filename:absname(File))
    end.

%% The code of the project, with all that it depends on: the folders of the code path that are not of OTP, Elixir or rebar3. The
%% first one is that of the module.
folders(_, #{pa := Folders}, More) -> {ok, More ++ Folders};
folders({Module, _, _}, _, More) ->
    Own = [Dir || Dir <- More ++ [module_folder(Module)], filelib:is_regular(file(Module, Dir))],
    Others = [filename:absname(Dir) || Dir <- code:get_path(), Dir =/= ".", filelib:is_dir(Dir)],
    case Own of
        [] -> {error, {?MODULE, {no_module, Module}}};
        [First | _] -> {ok, lists:uniq(More ++ [Dir || Dir <- [First | Others], not is_of_system(Dir)])}
    end.

module_folder(Module) ->
    case code:where_is_file(atom_to_list(Module) ++ ".beam") of
        non_existing -> "";
        File -> filename:absname(filename:dirname(File))
    end.

is_of_system(Dir) ->
    lists:any(fun(Root) -> string:prefix(Dir, Root ++ "/") =/= nomatch end, [code:lib_dir() | elixir()])
        orelse lists:member("plugins", filename:split(Dir)).

elixir() -> [filename:dirname(Dir) || Dir <- [code:lib_dir(elixir)], is_list(Dir)].

%% The applications of the project are configured as here. What means nothing in another VM is left out.
environment() ->
    [{App, [Parameter || {_, Value} = Parameter <- application:get_all_env(App), of_this_vm(Value) =:= []]}
     || {App, _, _} <- application:loaded_applications(), App =/= witness, not is_of_otp(App)].

is_of_otp(App) ->
    case code:lib_dir(App) of
        {error, _} -> false;
        Dir -> string:prefix(Dir, code:lib_dir() ++ "/") =/= nomatch
    end.

%% In the current folder, as that of the command. Tests may run at the same time.
new_name() -> filename:absname(witness_record:new_name(integer_to_list(erlang:unique_integer([positive])))).

%% --- the result ------------------------------------------------------------------

judge(#{outcome := unmonitored, warnings := Missed}, #{unmonitored := fail}) ->
    {{failed, nothing_monitored, lines(witness_test_result:nothing_monitored(Missed, ""))}, []};
judge(#{outcome := Outcome, unfaithful := Unfaithful, warnings := Warnings}, #{unmonitored := Unmonitored, vacuous := Vacuous})
  when Outcome =:= passed; Outcome =:= unmonitored ->
    Told = [Text || #{code := Code, text := Text} <- Warnings,
                    case Code of vacuous -> Vacuous =:= warn; _ -> Unmonitored =/= ignore end]
        ++ [unicode:characters_to_binary([~"search: ", witness_search_unfaithful:format(One)]) || One <- Unfaithful],
    case witness_test_result:vacuous(Warnings) of
        [_ | _] = Text when Vacuous =:= fail -> {{failed, vacuous, lines(Text)}, Told};
        _ -> {ok, Told}
    end;
judge(#{outcome := Outcome} = Found, Options) ->
    Dir = maps:get(recorded, Found, ""),
    Defaults = maps:with([seed, strategies], witness_option:defaults(witness_option_schema:search())),
    Own = maps:with([seed, strategies, specs, expect, crashes, tool], Options),
    Report = maps:merge(maps:merge(Defaults, Own), Found#{dir => Dir}),
    Text = [witness_search_text:head(Report, ?LOOK), explanation(Outcome, Dir, Options), hint(Outcome),
            witness_search_text:tail(Report, ?LOOK)],
    {{failed, problem(Outcome), lines(Text)}, []}.

problem({violated, _, _}) -> violation;
problem(Outcome) ->
    case witness_search_scheduler:is_result(Outcome) of
        true -> failed_schedule;
        false -> no_result
    end.

%% A violation is explained by a replay.
explanation({violated, _, _}, Dir, #{specs := Files} = Options) ->
    Replay = #{system => {log, {replay, #{dir => Dir}}}, specs => Files, log => false},
    maybe
        {ok, Run} ?= witness:start(maps:merge(maps:with([include], Options), Replay)),
        {ok, _} ?= witness:await(Run, infinity),
        Violations = [V || #{verdict := no} = V <- witness:verdicts(Run)],
        {ok, _} ?= witness:stop(Run),
        lists:join("\n", [witness_text_verdict:verdict(V, ?LOOK) || V <- lists:sublist(Violations, ?MAX_CHARTS)])
    else
        {error, Error} -> [~"the replay of the recording does not explain the violation: ", witness:format_error(Error), $\n]
    end;
explanation(_, _, _) -> [].

%% What an assertion of ExUnit has compared; and what is there in the VM of the tests, and not in that of the search.
hint({crashed, _, {#{'__struct__' := 'Elixir.ExUnit.AssertionError'} = Error, [_ | _]}}) ->
    Exception = 'Elixir.Exception',
    [[~"    ", Line, $\n] || Line <- string:split(string:trim(Exception:message(Error)), "\n", all), Line =/= <<>>];
hint({crashed, _, {undef, [{Module, _, _, _} | _]}}) ->
    case code:is_loaded(Module) =/= false andalso module_folder(Module) of
        "" -> [~"  the module is only in the VM of the tests: compile it to a file, for example in test/support\n"];
        _ -> []
    end;
hint({crashed, _, {noproc, _}}) -> no_process();
hint({crashed, _, {{noproc, _}, _}}) -> no_process();
hint(_) -> [].

no_process() ->
    ~"  processes and applications of the VM of the tests are not in that of the search: the test starts there what it needs\n".

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error(fun_of_module) ->
    <<"the search runs in a VM of its own, where this fun does not exist: name a function of a module that is compiled with debug "
      "information, fun scenario/0 or {my_tests, scenario, []}">>;
format_error({argument, Term}) ->
    [~"the search runs in a VM of its own, where ", witness_event:format_term(Term, 200),
     ~" of the arguments does not exist: let the function start what it needs"];
format_error({no_module, Module}) ->
    [~"the search loads the code from files, and the code path has none of ", witness_event:format_term(Module, 200),
     ~": compile it to a file, in a folder of the code path"];
format_error({not_exported, {Module, _, _} = MFA}) ->
    [witness_event:format_function(MFA, witness_event:syntax([Module])),
     ~" is not exported: the search runs in a VM of its own, and calls it there"];
format_error(monitor) -> ~"a search takes files of specifications, and no monitors";
format_error({own, Option}) -> [~"option ", atom_to_binary(Option), ~": expected nothing: a test has its own"];
format_error({function, Term}) ->
    [~"a function to run is expected, {Module, Function, Arguments}, not ", witness_event:format_term(Term, 200)].
