-module(witness_replay_traced).
-moduledoc """
Finds the calls of one function in a replay, and what they return, by a trace session of OTP.

The tracer also gets the entries that a traced process passes (`witness_replay_process:new/5`, `pop/1`). *Invariant:* trace
messages of a process keep the order of its actions. So the last entry before a call is the one after which it was made,
although the process runs on meanwhile. Every 1,024 entries a process waits for the tracer (`sync/0`), so the trace
messages on their way are bounded. Modules are not loaded again while the program runs, so a trace pattern stays where it is.
""".

-export([start/2, sync/0, finish/1, own_modules/0, format_error/1]).

-export_type([named/0, call/0, found/0, reason/0, traced/0]).

-doc "A function by its name; `any`: of every arity. A module of Elixir may be without its prefix.".
-type named() :: {Module :: binary(), Function :: binary(), arity() | any}.

-doc """
A call that a process made after this entry of its log. Arguments and results are text, the first 1,000 characters of each;
`none`: it did not return.
""".
-type call() :: #{id := pos_integer(), entry := non_neg_integer(), function := mfa(), args := [binary()],
                  result := {returned, binary()} | {raised, error | exit | throw, binary()} | none}.

-doc "The calls of each process are in the order in which it made them. `complete`: there are no more.".
-type found() :: #{calls := [call()], complete := boolean()}.

-doc "Why a function cannot be traced.".
-type reason() :: {module, binary()} | {load, module(), term()} | {function, module(), [{atom(), arity()}]}
                | {built_in, mfa()} | {used, module()}.

-opaque traced() :: {trace:session(), Tracer :: pid()}.

%% Characters of a term, and how many calls are kept.
-define(MAX_TERM_CHARS, 1000).
-define(MAX_CALLS, 10_000).
%% Functions of a module that an error names.
-define(MAX_NAMED, 20).

%% at: the last entry of each process. open: its calls that have not returned, the last one first.
-record(tracer, {session :: trace:session(),
                 functions :: [mfa()],
                 at = #{} :: #{pid() => {pos_integer(), non_neg_integer()}},
                 open = #{} :: #{pid() => [pos_integer() | more]},
                 calls = #{} :: #{pos_integer() => call()},
                 complete = true :: boolean()}).

-doc "Starts to trace. `Woven`: the folders of replayed modules.".
-spec start(named(), Woven :: [file:filename()]) -> {ok, traced()} | {error, reason()}.
start({Name, Function, Arity}, Woven) ->
    maybe
        {ok, Module} ?= module(Name, Woven),
        {ok, Functions} ?= functions(Module, Function, Arity),
        %% With the highest priority, the tracer handles a message before the process that makes it has to wait. Messages are
        %% off its heap, since it may get very many and large ones.
        Syntax = witness_event:used_syntax(),
        Tracer = spawn_opt(fun() ->
            ok = witness_event:use_syntax(Syntax),
            receive {session, Session} -> loop(#tracer{session = Session, functions = Functions}) end
        end, [link, {priority, max}, {message_queue_data, off_heap}]),
        Session = trace:session_create(?MODULE, Tracer, []),
        Tracer ! {session, Session},
        ok = persistent_term:put(?MODULE, Tracer),
        _ = [1 = trace:function(Session, MFA, Spec, [local])
             || {MFA, Spec} <- own_specs() ++ [{MFA, traced_spec()} || MFA <- Functions]],
        _ = trace:process(Session, all, true, [call, arity]),
        {ok, {Session, Tracer}}
    end.

own_specs() ->
    {Id, Passed} = witness_replay_process:fields(),
    [{{witness_replay_process, new, 5}, [{['$1', '_', '_', '_', '_'], [], [{message, {{at, '$1', 0}}}]}]},
     {{witness_replay_process, pop, 1},
      [{['$1'], [], [{message, {{at, {element, Id, '$1'}, {'+', {element, Passed, '$1'}, 1}}}}]}]},
     {{witness_replay_emitter, report_exit, 2}, [{'_', [], [{message, ended}]}]}].

traced_spec() -> [{'_', [], [{exception_trace}, {message, {{called, '$_'}}}]}].

module(Name, Woven) ->
    Names = [Beam || Beam <- [Name, <<"Elixir.", Name/binary>>], filename:basename(Beam) =:= Beam, is_woven(Beam, Woven)],
    case Names of
        [Found | _] -> load(binary_to_atom(Found));
        [] -> {error, {module, Name}}
    end.

is_woven(Name, Woven) ->
    case code:where_is_file(unicode:characters_to_list(Name) ++ ".beam") of
        non_existing -> false;
        File -> lists:member(filename:dirname(File), Woven)
    end.

load(Module) ->
    case {lists:member(Module, own_modules()), code:ensure_loaded(Module)} of
        {true, _} -> {error, {used, Module}};
        {false, {module, _}} -> {ok, Module};
        {false, {error, Reason}} -> {error, {load, Module, Reason}}
    end.

functions(Module, Function, Arity) ->
    Own = [FA || {F, _} = FA <- Module:module_info(functions), not is_added(atom_to_binary(F))],
    case [{Module, F, A} || {F, A} <- Own, atom_to_binary(F) =:= Function, Arity =:= any orelse A =:= Arity] of
        [] -> {error, {function, Module, lists:sort(Own)}};
        Found ->
            case [MFA || MFA <- Found, is_built_in(MFA)] of
                [] -> {ok, Found};
                [MFA | _] -> {error, {built_in, MFA}}
            end
    end.

%% Functions that the compiler and weaving have added.
is_added(<<"-", _/binary>>) -> true;
is_added(Name) -> Name =:= ~"module_info".

is_built_in({Module, Function, Arity}) ->
    erlang:is_builtin(Module, Function, Arity) orelse lists:member({Function, Arity}, Module:module_info(nifs)).

-doc "Modules that the replay itself calls in replayed processes: such a call would look like one of the program.".
-spec own_modules() -> [module()].
own_modules() -> [atomics, beam_lib, code, lists, maps].

-doc "A replayed process waits until the tracer has seen what it did, if there is a tracer.".
-spec sync() -> ok.
sync() ->
    case persistent_term:get(?MODULE, none) of
        none -> ok;
        Tracer -> witness_replay_emitter:sync(reached, Tracer)
    end.

-doc "Ends tracing. The result is the calls.".
-spec finish(traced()) -> found().
finish({Session, Tracer}) ->
    Delivered = trace:delivered(Session, all),
    receive {trace_delivered, all, Delivered} -> ok end,
    Ref = make_ref(),
    Tracer ! {finish, self(), Ref},
    receive
        {Ref, Found} ->
            true = trace:session_destroy(Session),
            Found
    end.

%% --- the tracer ------------------------------------------------------------------

loop(#tracer{at = At} = T) ->
    receive
        {trace, Proxy, call, _, {at, Id, Entry}} -> loop(T#tracer{at = At#{Proxy => {Id, Entry}}});
        {trace, Proxy, call, MFA, {called, Args}} when is_map_key(Proxy, At) -> loop(add_call(Proxy, MFA, Args, T));
        {trace, Proxy, call, _, ended} -> loop(T#tracer{at = maps:remove(Proxy, At), open = maps:remove(Proxy, T#tracer.open)});
        {trace, Proxy, return_from, _, Value} -> loop(pop(Proxy, {returned, Value}, T));
        {trace, Proxy, exception_from, _, {Class, Reason}} -> loop(pop(Proxy, {raised, Class, Reason}, T));
        {reached, From, Ref} ->
            From ! {Ref, ok},
            loop(T);
        {finish, From, Ref} ->
            #tracer{calls = Calls, complete = Complete} = T,
            From ! {Ref, #{calls => [maps:get(N, Calls) || N <- lists:sort(maps:keys(Calls))], complete => Complete}};
        %% Calls of processes that are not replayed.
        {trace, _, call, _, _} -> loop(T)
    end.

add_call(Proxy, {Module, Function, Arity}, Args, #tracer{at = At, calls = Calls} = T) when map_size(Calls) < ?MAX_CALLS ->
    #{Proxy := {Id, Entry}} = At,
    N = map_size(Calls) + 1,
    Call = #{id => Id, entry => Entry, function => {Module, Function, Arity}, args => [term(Arg, Module) || Arg <- Args],
             result => none},
    push(Proxy, N, T#tracer{calls = Calls#{N => Call}});
%% From here on these functions are not traced, so no stack grows for a call that is not kept.
add_call(Proxy, _, _, #tracer{session = Session, functions = Functions, complete = Complete} = T) ->
    _ = [trace:function(Session, MFA, false, [local]) || Complete, MFA <- Functions],
    push(Proxy, more, T#tracer{complete = false}).

push(Proxy, N, #tracer{open = Open} = T) -> T#tracer{open = Open#{Proxy => [N | maps:get(Proxy, Open, [])]}}.

pop(Proxy, Result, #tracer{open = Open, calls = Calls} = T) ->
    case Open of
        #{Proxy := [more | Rest]} -> T#tracer{open = Open#{Proxy := Rest}};
        #{Proxy := [N | Rest]} ->
            #{N := #{function := {Module, _, _}} = Call} = Calls,
            T#tracer{open = Open#{Proxy := Rest}, calls = Calls#{N := Call#{result := result_text(Result, Module)}}};
        #{} -> T
    end.

result_text({returned, Value}, Module) -> {returned, term(Value, Module)};
result_text({raised, Class, Reason}, Module) -> {raised, Class, term(Reason, Module)}.

%% In the language of the function.
term(Term, Module) -> witness_event:format_term(Term, ?MAX_TERM_CHARS, witness_event:syntax([Module])).

-doc "An error as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({module, Name}) -> [~"there is no module ", Name, ~" of the recorded code"];
format_error({load, Module, Reason}) ->
    [~"module ", atom_to_binary(Module), ~" cannot be loaded: ", witness_event:format_term(Reason, 200)];
format_error({function, Module, Functions}) ->
    [~"module ", atom_to_binary(Module), ~" has no such function: it has ",
     lists:join(~", ", [[atom_to_binary(F), $/, integer_to_binary(A)] || {F, A} <- lists:sublist(Functions, ?MAX_NAMED)]),
     [~" and others" || length(Functions) > ?MAX_NAMED]];
format_error({built_in, MFA}) ->
    [witness_event:format_function(MFA),
     ~" is not written in Erlang, and cannot be traced: where its results matter they are events"];
format_error({used, Module}) ->
    [~"functions of ", atom_to_binary(Module), ~" cannot be traced: the replay itself calls them in the same processes"].
