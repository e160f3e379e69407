-module(witness_record_code).
-moduledoc """
Which code a recorded program runs: woven modules, in folders that come first in the code path of its VM.

Witness itself is no part of a program, though a project may depend on it and have a copy of it in its folders
(`m:witness_weave_own`). That folder is left out. An application that needs Witness finds it running, outside.

These are woven: `kernel` and `stdlib`, the modules in the user's folders, the application that is to run, what the `.app`
files there name, and the applications that the user names. A module that is not woven runs all the same, but the messages
that it takes are not recorded, so the summary names it.
""".

-export([prepare/1, woven/3, user/1, folders/1, objects/2, cache/1, digests/1, outside/1]).

-export_type([code/0, woven/0, digests/0]).

-doc "The digests of the object code of modules, before they were woven.".
-type digests() :: #{module() => binary()}.

-doc """
- `woven`, `plain`: folders with woven modules, and those with the modules as they are; the first one takes precedence. `plain`
  lacks the folders of OTP: every VM knows them, and while it boots, it would search `plain` first;
- `unwoven`: modules that were left as they are, except those with native functions;
- `calls`: the numbers of recorded calls;
- `handler`: the folder of a woven `error_handler`, if anything is woven. It can be loaded when all that the recorder needs is
  loaded;
- `digests`: of all modules in these folders;
- `outside`: applications that are not recorded;
- `archive`: the code that is kept with the recording (`m:witness_record_kept`).
""".
-type code() :: #{woven := [file:filename()], plain := [file:filename()], unwoven := [module()],
                  calls := #{mfa() => non_neg_integer()}, handler => file:filename(), digests := digests(),
                  outside => [atom()], archive => binary()}.

-doc "The same, for any plan. `left`: modules that were left as they are, and have no native functions, and why.".
-type woven() :: #{woven := [file:filename()], plain := [file:filename()], handler := file:filename(),
                   left := [{module(), witness_weave_error:reason()}]}.

-doc "Weaves what the cache does not have.".
-spec prepare(witness_record:options()) -> {ok, code()} | {error, witness_record:reason()}.
prepare(Options) ->
    maybe
        {ok, Dirs} ?= folders(Options),
        {ok, Folders} ?= objects(Dirs, Options),
        Plan = plan(Folders, Options),
        {ok, #{left := Left} = Woven} ?= woven(Folders, Plan, maps:with([cache, on_progress], Options)),
        {ok, (maps:merge(maps:remove(left, Woven), archive(Folders, Options)))#{
            unwoven => [Module || {Module, _} <- Left], calls => witness_record_calls:calls(Plan), digests => digests(Folders),
            outside => outside(Options)}}
    end.

%% A recording of the last part only cannot be replayed.
archive(_, #{last := _}) -> #{};
archive(_, #{keep_code := false}) -> #{};
archive(Folders, Options) ->
    #{archive => witness_record_kept:archive(Folders, user(Options), cache(maps:with([cache], Options)))}.

-doc "Applications that are not recorded: those named, `elixir` for a program in Elixir, and `witness` if the program needs it.".
-spec outside(witness_record:options()) -> [atom()].
outside(Options) ->
    User = user(Options),
    [elixir || elixir(Options, User) =/= []]
        ++ [witness || is_map_key(witness, closure(wanted(Options, User), User, #{}))]
        ++ maps:get(outside, Options, []).

-doc "The user's folders.".
-spec user(#{pa => [file:filename()], any() => any()}) -> [file:filename()].
user(Options) -> witness_weave_own:others([filename:absname(Dir) || Dir <- maps:get(pa, Options, [])]).

-doc "The folders of the modules that are to be woven.".
-spec folders(witness_record:options()) -> {ok, [file:filename()]} | {error, witness_record:reason()}.
folders(Options) ->
    User = user(Options),
    maybe
        ok ?= there(named(Options), User),
        Apps = applications(wanted(Options, User), User),
        {ok, lists:uniq(User ++ [Dir || {_, Dir} <- Apps])}
    end.

-doc "The digests of the modules in folders; if several have the same name, of the first one.".
-spec digests([witness_weave_objects:folder()]) -> digests().
digests(Folders) -> maps:from_list(lists:append([Digests || #{digests := Digests} <- lists:reverse(Folders)])).

-doc "Reads the modules in these folders.".
-spec objects([file:filename()], #{cache => file:filename(), any() => any()}) ->
    {ok, [witness_weave_objects:folder()]} | {error, {weave, term()}}.
objects(Dirs, Options) ->
    case witness_weave_objects:read(Dirs, cache(maps:with([cache], Options))) of
        {ok, Folders} -> {ok, Folders};
        {error, Reason} -> {error, {weave, Reason}}
    end.

-doc "Weaves the modules of folders by a plan, and `error_handler` by a plan of its own.".
-spec woven([witness_weave_objects:folder()], witness_weave:plan(),
            #{cache => file:filename(), on_progress => fun((iodata()) -> term())}) ->
    {ok, woven()} | {error, {weave, term()}}.
woven(Folders, #{natives := Natives} = Plan, Options) ->
    Tell = maps:get(on_progress, Options, fun(_) -> ok end),
    Progress = fun(Done, All) -> Tell(io_lib:format("woven: ~b of ~b modules", [Done, All])) end,
    Cache = cache(maps:with([cache], Options)),
    maybe
        {ok, Woven, Left} ?= witness_weave_cache:prepare(Folders, Plan, Cache, #{progress => Progress}),
        {ok, [Handler], []} ?= witness_weave_cache:prepare([error_handler], witness_record_handler:plan(Plan), Cache),
        Known = maps:from_list([{error_handler, []} | [{Module, []} || {Module, _, _} <- maps:keys(Natives)]]),
        {ok, #{woven => Woven, handler => Handler,
               plain => [Dir || #{dir := Dir} <- Folders, not lists:prefix(code:lib_dir(), Dir)],
               left => [One || {Module, _} = One <- Left, not is_map_key(Module, Known)]}}
    else
        {ok, _, [{error_handler, Reason}]} -> {error, {weave, Reason}};
        {error, Reason} -> {error, {weave, Reason}}
    end.

%% A monitor of the recording needs the messages that were sent.
plan(Folders, #{contents := true}) -> (witness_record_calls:plan(Folders))#{sends := announced};
plan(Folders, _) -> witness_record_calls:plan(Folders).

-doc "The folder of woven modules: the option `cache`, or else `witness_weave_cache:default_dir/0`.".
-spec cache(#{cache => file:filename(), any() => any()}) -> file:filename_all().
cache(#{cache := Dir}) -> filename:absname(Dir);
cache(#{}) -> witness_weave_cache:default_dir().

wanted(Options, User) ->
    [kernel, stdlib | named(Options)] ++ elixir(Options, User)
        ++ [App || Dir <- User, File <- filelib:wildcard("*.app", Dir), App <- needs(filename:join(Dir, File))].

named(Options) ->
    %% The observer may have to compile monitors in the VM of the program.
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
            %% The applications that Witness needs run with it. Unwoven they would pass on the sender of each message.
            closure(Names ++ Needs, User, Found#{App => case App of witness -> none; _ -> Dir end});
        %% An optional application that is not installed.
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
            %% A folder of the path may have the name of an application without being one.
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
