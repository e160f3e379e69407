-module(witness_record_code).
-moduledoc """
Which code a recorded program runs: woven modules, in folders that its VM looks into first.

Witness itself is no part of a program, though a project may depend on it and have a copy of it in its folders
(`m:witness_weave_own`): that folder is left out, and an application that needs Witness finds it running, outside.

Woven are `kernel` and `stdlib`, the modules in the user's folders, the application that is to run, what the `.app`
files there name, and the applications that the user names. A module that is not woven runs all the same, but the
messages that it takes are not in the recording, so it is named in the summary.
""".

-export([prepare/1, woven/3, user/1, folders/1, objects/2, cache/1, digests/1, outside/1]).

-export_type([code/0, woven/0, digests/0]).

-doc "What modules were before they were woven, by the digests of their object code.".
-type digests() :: #{module() => binary()}.

-doc """
Folders with woven modules, and those with the modules as they are, the first one first, without those of OTP, which
every VM knows: while it boots, it would look there first; modules that were left as they are, but
for those with native functions; the numbers of recorded calls; the folder of a woven `error_handler`, which can be
loaded when all that the recorder needs has been, where anything is woven; the digests of all modules in these folders; applications that are
not to be recorded.
""".
-type code() :: #{woven := [file:filename()], plain := [file:filename()], unwoven := [module()],
                  calls := #{mfa() => non_neg_integer()}, handler => file:filename(), digests := digests(),
                  outside => [atom()]}.

-doc "The same, by any plan, with whatever was left as it is and has no native functions.".
-type woven() :: #{woven := [file:filename()], plain := [file:filename()], handler := file:filename(), left := [module()]}.

-doc "Weaves what the cache does not have.".
-spec prepare(witness_record:options()) -> {ok, code()} | {error, witness_record:reason()}.
prepare(Options) ->
    maybe
        {ok, Dirs} ?= folders(Options),
        {ok, Folders} ?= objects(Dirs, Options),
        Plan = plan(Folders, Options),
        {ok, #{left := Left} = Woven} ?= woven(Folders, Plan, maps:with([cache, on_progress], Options)),
        {ok, (maps:remove(left, Woven))#{
            unwoven => Left, calls => witness_record_calls:calls(Plan), digests => digests(Folders),
            outside => outside(Options)}}
    end.

-doc "Applications that are not to be recorded: those named, and what every program of Elixir finds running.".
-spec outside(witness_record:options()) -> [atom()].
outside(Options) ->
    User = user(Options),
    [elixir || elixir(Options, User) =/= []]
        ++ [witness || is_map_key(witness, closure(wanted(Options, User), User, #{}))]
        ++ maps:get(outside, Options, []).

-doc "The user's folders.".
-spec user(#{pa => [file:filename()], any() => any()}) -> [file:filename()].
user(Options) -> witness_weave_own:others([filename:absname(Dir) || Dir <- maps:get(pa, Options, [])]).

-doc "The folders of the modules that are woven, as they are.".
-spec folders(witness_record:options()) -> {ok, [file:filename()]} | {error, witness_record:reason()}.
folders(Options) ->
    User = user(Options),
    maybe
        ok ?= there(named(Options), User),
        Apps = applications(wanted(Options, User), User),
        {ok, lists:uniq(User ++ [Dir || {_, Dir} <- Apps])}
    end.

-doc "Of the modules in folders; of those with the same name, the first one.".
-spec digests([witness_weave_objects:folder()]) -> digests().
digests(Folders) -> maps:from_list(lists:append([Digests || #{digests := Digests} <- lists:reverse(Folders)])).

-doc "What is in these folders.".
-spec objects([file:filename()], #{cache => file:filename(), any() => any()}) ->
    {ok, [witness_weave_objects:folder()]} | {error, {weave, term()}}.
objects(Dirs, Options) ->
    case witness_weave_objects:read(Dirs, cache(maps:with([cache], Options))) of
        {ok, Folders} -> {ok, Folders};
        {error, Reason} -> {error, {weave, Reason}}
    end.

-doc "The modules of folders woven by a plan, `error_handler` by one of its own.".
-spec woven([witness_weave_objects:folder()], witness_weave:plan(), #{cache => file:filename(), on_progress => fun((iodata()) -> term())}) ->
    {ok, woven()} | {error, {weave, term()}}.
woven(Folders, #{natives := Natives} = Plan, Options) ->
    Tell = maps:get(on_progress, Options, fun(_) -> ok end),
    Progress = fun(Done, All) -> Tell(io_lib:format("woven: ~b of ~b modules", [Done, All])) end,
    Cache = cache(maps:with([cache], Options)),
    maybe
        {ok, Woven, Left} ?= witness_weave_cache:prepare(Folders, Plan, Cache, #{progress => Progress}),
        {ok, [Handler], []} ?= witness_weave_cache:prepare([error_handler], witness_record_handler:plan(Plan), Cache),
        Known = maps:from_list([{error_handler, []} | [{Module, []} || {Module, _, _} <- maps:keys(Natives)]]),
        {ok, #{woven => Woven, handler => Handler, plain => [Dir || #{dir := Dir} <- Folders, not lists:prefix(code:lib_dir(), Dir)],
               left => [Module || {Module, _} <- Left, not is_map_key(Module, Known)]}}
    else
        {ok, _, [{error_handler, Reason}]} -> {error, {weave, Reason}};
        {error, Reason} -> {error, {weave, Reason}}
    end.

%% Whoever monitors the recording wants to know what was sent.
plan(Folders, #{contents := true}) -> (witness_record_calls:plan(Folders))#{sends := announced};
plan(Folders, _) -> witness_record_calls:plan(Folders).

-doc "The folder of what was woven: `cache`, or the one that the user's programs keep such things in.".
-spec cache(#{cache => file:filename(), any() => any()}) -> file:filename_all().
cache(#{cache := Dir}) -> filename:absname(Dir);
cache(#{}) ->
    Base = case os:getenv("WITNESS_CACHE") of
        Set when Set =:= false; Set =:= "" -> filename:basedir(user_cache, "witness");
        Set -> filename:absname(Set)
    end,
    filename:join(Base, "woven").

wanted(Options, User) ->
    [kernel, stdlib | named(Options)] ++ elixir(Options, User)
        ++ [App || Dir <- User, File <- filelib:wildcard("*.app", Dir), App <- needs(filename:join(Dir, File))].

named(Options) ->
    %% Who observes may have to compile monitors, and then the program has what it compiles with.
    [App || #{app := App} <- [Options]] ++ [compiler || is_map_key(observer, Options)]
        ++ lists:append([maps:get(Key, Options, []) || Key <- [applications, weave, outside]]).

elixir(Options, User) ->
    Module = case Options of #{run := {M, _, _}} -> atom_to_list(M); #{} -> "" end,
    IsElixir = lists:prefix("Elixir.", Module) orelse
        lists:any(fun(Dir) -> filelib:wildcard("Elixir.*.beam", Dir) =/= [] end, User),
    [App || IsElixir, App <- [elixir, logger]].

%% Applications with their folders, and what they need.
applications(Names, User) -> [{App, Dir} || App := Dir <- closure(Names, User, #{}), Dir =/= none].

closure([], _, Found) -> Found;
closure([App | Names], User, Found) when is_map_key(App, Found) -> closure(Names, User, Found);
closure([App | Names], User, Found) ->
    case folder(App, User) of
        {ok, Dir} ->
            Needs = needs(filename:join(Dir, atom_to_list(App) ++ ".app")),
            %% The applications that Witness needs run with it, and woven they would pass on the sender of each message.
            closure(Names ++ Needs, User, Found#{App => case App of witness -> none; _ -> Dir end});
        %% An optional application that is not there.
        none -> closure(Names, User, Found#{App => none})
    end.

there([], _) -> ok;
there([App | Apps], User) ->
    case folder(App, User) of
        {ok, _} -> there(Apps, User);
        none -> {error, {application, App, not_found}}
    end.

folder(App, User) ->
    File = atom_to_list(App) ++ ".app",
    case [Dir || Dir <- User, filelib:is_regular(filename:join(Dir, File))] of
        [Dir | _] -> {ok, Dir};
        [] ->
            %% A folder of the path may have the name of an application, and be none.
            case code:where_is_file(File) of
                non_existing -> none;
                Found -> {ok, filename:absname(filename:dirname(Found))}
            end
    end.

needs(File) ->
    case file:consult(File) of
        {ok, [{application, _, Keys}]} ->
            [App || Key <- [applications, included_applications], App <- proplists:get_value(Key, Keys, [])];
        _ -> []
    end.
