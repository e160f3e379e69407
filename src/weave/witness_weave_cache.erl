-module(witness_weave_cache).
-moduledoc """
Woven object code on disk, so that whole applications, OTP's included, are woven once.

```erlang
1> {ok, Folders} = witness_weave_objects:read(["/usr/lib/erlang/lib/kernel-11.0/ebin"], CacheDir).
2> {ok, Ebins, NotWoven} = witness_weave_cache:prepare(Folders, Plan, CacheDir).
3> open_port({spawn, ["erl -pa " | Ebins]}, []).    % a VM that runs it, from its boot on
```

**Keys.** A woven module has a key: the digest of its object code, of the parts of the plan that concern it, of
the weaver and its tables, and of the OTP that compiles it. A folder has a key too: the digest of the keys of its modules.
So woven code is reused as long as nothing differs, whatever the times of files are, and a module that
has changed is woven alone.

```
CacheDir/modules/KEY              woven object code, or why there is none; and what `stored/3` keeps
CacheDir/sets/KEY/lists.beam ...  the woven modules of a folder: what a VM is given
CacheDir/sets/KEY/woven           which modules are there, with their sizes; which are not, with the reason
CacheDir/sets/code-KEY/           the code that is kept with a recording, unpacked (`m:witness_record_kept`)
CacheDir/folders/KEY              what is known of a folder by its contents (`m:witness_weave_objects`); with a plan, its set
```

If the cache becomes too large, entries that were not used for a week are removed (`m:witness_weave_cache_bound`).

**Crashes and concurrent use.** Every file and folder is written under another name and renamed when it is
complete. Two processes that weave the same at the same time write the same. If a file of a folder is missing or has another
size, the folder is made anew.

Not woven, with the reason: modules that `m:witness_weave_forms` refuses (native functions, functions that run on loading, no
debug information), modules that are part of the VM, modules that the plan excepts, and Witness itself.
""".

-export([prepare/3, prepare/4, stored/3, default_dir/0, check_use/1]).

-export_type([options/0, not_woven/0]).

-doc """
- `progress`: a function that any process calls when a module is woven, with how many are done, and how many there are;
- `limit`: bytes that the cache may have before old entries are removed (1 GiB).
""".
-type options() :: #{progress => fun((Done :: non_neg_integer(), All :: non_neg_integer()) -> term()),
                     limit => non_neg_integer()}.

-doc "A module that is not woven, with the reason.".
-type not_woven() :: {module(), witness_weave_error:reason()}.

%% Must be increased when the format on disk changes.
-define(FORMAT, 1).
-define(WOVEN, "woven").

-doc "Weaves the modules of folders, as they were read, and modules by their names, if the cache does not have them.".
-spec prepare([witness_weave_objects:folder() | module()], witness_weave:plan(), file:filename()) ->
    {ok, [file:filename()], [not_woven()]} | {error, {file:filename(), file:posix()}}.
prepare(Sources, Plan, CacheDir) -> prepare(Sources, Plan, CacheDir, #{}).

-doc "The same, with options. The resulting folders are in the order of the given ones; the named modules share one folder.".
-spec prepare([witness_weave_objects:folder() | module()], witness_weave:plan(), file:filename(), options()) ->
    {ok, [file:filename()], [not_woven()]} | {error, {file:filename(), file:posix()}}.
prepare(Sources, Plan, CacheDir, Options) ->
    {Names, Folders} = lists:partition(fun erlang:is_atom/1, Sources),
    Base = witness_weave_store:digest({?FORMAT, tool(Plan), maps:without([natives, functions], Plan)}),
    try
        make_folders(CacheDir),
        Found = [find_or_open(none, [find_object(Name) || Name <- Names], Base, Plan, CacheDir) || Names =/= []]
            ++ [of_folder(Folder, Base, Plan, CacheDir) || Folder <- Folders],
        Open = lists:append([Set || {open, _, Set} <- Found]),
        Wanted = lists:uniq(fun({_, _, Key}) -> Key end, Open),
        ok = weave([Item || {_, _, Key} = Item <- Wanted, read_module(Key, CacheDir) =:= none], Plan, CacheDir, Options),
        Done = [finish_set(Of, CacheDir) || Of <- Found],
        _ = [witness_weave_cache_bound:keep(CacheDir, maps:get(limit, Options, witness_weave_cache_bound:default()))
             || Open =/= []],
        {ok, [Dir || {Dir, _} <- Done], lists:append([NotWoven || {_, NotWoven} <- Done])}
    catch
        throw:{file, File, Reason} -> {error, {File, Reason}}
    end.

%% The contents of the folder and the plan determine its set, so no file has to be parsed. If the set was not used
%% for a day, its modules were not either.
of_folder(#{objects := Objects, contents := Contents}, Base, Plan, CacheDir) ->
    Functions = relevant_functions([M || {M, _} <- Objects], Plan),
    Link = filename:join([CacheDir, "folders",
                          witness_weave_store:digest({Base, maps:get(natives, Plan, #{}), Functions, Contents})]),
    maybe
        {ok, [_ | _] = Name} ?= witness_weave_store:term(Link),
        fresh ?= witness_weave_cache_bound:mark_used(Link),
        Dir = filename:join([CacheDir, "sets", Name]),
        fresh ?= witness_weave_cache_bound:mark_used(filename:join(Dir, ?WOVEN)),
        {ok, NotWoven} ?= read_set(Dir),
        {found, Dir, NotWoven}
    else
        _ -> find_or_open(Link, Objects, Base, Plan, CacheDir)
    end.

find_or_open(Link, Objects, Base, Plan, CacheDir) ->
    Set = [{Module, Object, key(Module, Object, Base, Plan)} || {Module, Object} <- Objects],
    case find_set(Set, CacheDir) of
        none -> {open, Link, Set};
        {Dir, NotWoven} -> link_folder(Link, Dir, NotWoven)
    end.

link_folder(none, Dir, NotWoven) -> {found, Dir, NotWoven};
link_folder(Link, Dir, NotWoven) ->
    ok = witness_weave_store:write(Link, term_to_binary(filename:basename(Dir))),
    {found, Dir, NotWoven}.

finish_set({found, Dir, NotWoven}, _) -> {Dir, NotWoven};
finish_set({open, Link, Set}, CacheDir) ->
    {Dir, NotWoven} = make_set(Set, CacheDir),
    {found, Dir, NotWoven} = link_folder(Link, Dir, NotWoven),
    {Dir, NotWoven}.

-doc """
The result of a function that takes long, from the cache if it is there. The term determines the result, together with the release of
OTP: it has a digest of all that the function reads. Where the cache cannot be written, the function is called each time.
""".
-spec stored(term(), file:filename(), fun(() -> Result)) -> Result.
stored(Of, CacheDir, Make) ->
    Key = witness_weave_store:digest({?FORMAT, stored, erlang:system_info(otp_release), erlang:system_info(version), Of}),
    case read_module(Key, CacheDir) of
        {stored, Result} -> Result;
        _ ->
            Result = Make(),
            try
                make_folders(CacheDir),
                witness_weave_store:write(module_file(Key, CacheDir), term_to_binary({stored, Result})),
                witness_weave_cache_bound:keep(CacheDir, witness_weave_cache_bound:default())
            catch
                throw:{file, _, _} -> ok
            end,
            Result
    end.

-doc "The cache where no other folder is named: `woven` in `WITNESS_CACHE`, or in the user's cache folder.".
-spec default_dir() -> file:filename_all().
default_dir() ->
    Base = case os:getenv("WITNESS_CACHE") of
        Set when Set =:= false; Set =:= "" -> filename:basedir(user_cache, "witness");
        Set -> filename:absname(Set)
    end,
    filename:join(Base, "woven").

-doc "Whether a VM runs the code in one of these folders, and not OTP's original module.".
-spec check_use([file:filename()]) -> ok | {error, {not_in_use, file:filename()}}.
check_use(Folders) ->
    Loaded = code:which(gen_server),
    case lists:member(filename:dirname(Loaded), Folders) of
        true -> ok;
        false -> {error, {not_in_use, Loaded}}
    end.

%% --- lookup ----------------------------------------------------------------------

find_object(Module) ->
    case code:get_object_code(Module) of
        {Module, Binary, File} -> {Module, {File, Binary}};
        error -> {Module, {"", ~""}}
    end.

tool(Plan) ->
    Modules = [witness_weave, witness_weave_after, witness_weave_behaviour, witness_weave_behaviour_calls,
               witness_weave_calls, witness_weave_core, witness_weave_entry, witness_weave_expr, witness_weave_forms,
               witness_weave_funs, witness_weave_names, witness_event_atom_table, witness_weave_unchanged, compile,
               maps:get(calls, Plan, witness_weave_calls) | maps:get(tables, Plan, [])],
    {erlang:system_info(otp_release), erlang:system_info(version), [M:module_info(md5) || M <- Modules]}.

%% The result does not depend on the names of the folder and of the file.
key(Module, {_, Binary}, Base, Plan) ->
    witness_weave_store:digest({Base, erlang:md5(Binary), relevant_natives(Binary, maps:get(natives, Plan, #{})),
                                relevant_functions([Module], Plan)}).

%% A module reports the calls of its own functions only.
relevant_functions(Modules, Plan) ->
    maps:filter(fun({M, _, _}, _) -> lists:member(M, Modules) end, maps:get(functions, Plan, #{})).

%% The native functions that the code can name, by their module or by their own name.
relevant_natives(_, Natives) when map_size(Natives) =:= 0 ->
    #{};
relevant_natives(Binary, Natives) ->
    case beam_lib:chunks(Binary, [atoms]) of
        {ok, {_, [{atoms, Atoms}]}} ->
            Named = maps:from_keys([Atom || {_, Atom} <- Atoms], []),
            maps:filter(fun({M, F, _}, _) -> is_map_key(M, Named) orelse is_map_key(F, Named) end, Natives);
        _ -> #{}
    end.

%% --- weaving ---------------------------------------------------------------------

%% One process per scheduler; each takes the next module when it has finished one. The largest modules come first, since the
%% last one to finish determines the total time.
weave([], _, _, _) ->
    ok;
weave(Items, Plan, CacheDir, Options) ->
    Sorted = lists:sort(fun({_, {_, A}, _}, {_, {_, B}, _}) -> byte_size(A) >= byte_size(B) end, Items),
    {All, Next, Done} = {list_to_tuple(Sorted), atomics:new(1, []), atomics:new(1, [])},
    Own = own(),
    Progress = maps:get(progress, Options, fun(_, _) -> ok end),
    Work = fun Work() ->
        case atomics:add_get(Next, 1, 1) of
            I when I > tuple_size(All) -> ok;
            I ->
                {_, _, Key} = Item = element(I, All),
                witness_weave_store:write(module_file(Key, CacheDir), term_to_binary(woven(Item, Plan, Own))),
                _ = Progress(atomics:add_get(Done, 1, 1), tuple_size(All)),
                Work()
        end
    end,
    Workers = [spawn_monitor(fun() -> try Work() catch throw:Thrown -> exit({thrown, Thrown}) end end)
               || _ <- lists:seq(1, min(tuple_size(All), erlang:system_info(schedulers_online)))],
    Ends = [receive {'DOWN', Monitor, process, Worker, Reason} -> Reason end || {Worker, Monitor} <- Workers],
    _ = [throw(Thrown) || {thrown, Thrown} <- Ends],
    ok = lists:foreach(fun(normal) -> ok; (Reason) -> error(Reason) end, Ends).

woven({Module, {File, Original}, _}, Plan, Own) ->
    Left = [Why || {Why, true} <- [{own, is_map_key(Module, Own)},
                                   {excepted, lists:member(Module, maps:get(except, Plan, []))},
                                   {preloaded, lists:member(Module, erlang:pre_loaded())}]],
    case Left of
        [Why | _] -> {not_woven, {Why, Module}};
        [] ->
            Relevant = Plan#{natives => relevant_natives(Original, maps:get(natives, Plan, #{})), unchanged => kept,
                             quick => lists:prefix(code:lib_dir(), File)},
            try witness_weave:prepare({Module, File, Original}, Relevant) of
                {ok, #{woven := Woven}} -> {woven, Woven};
                {error, Reason} -> {not_woven, Reason}
            catch
                %% A fault in the compiler or in Witness concerns this module only, not the whole system.
                _:Reason -> {not_woven, {crashed, {Module, Reason}}}
            end
    end.

%% Witness's own modules, wherever they are.
own() ->
    Dir = filename:dirname(code:which(?MODULE)),
    #{list_to_atom(filename:basename(File, ".beam")) => [] || File <- filelib:wildcard("witness*.beam", Dir)}.

%% --- on disk ---------------------------------------------------------------------

make_folders(CacheDir) ->
    lists:foreach(fun(Part) -> witness_weave_store:folder(filename:join(CacheDir, Part)) end, ["modules", "sets", "folders"]).

module_file(Key, CacheDir) -> filename:join([CacheDir, "modules", Key]).

set_folder(Set, CacheDir) ->
    filename:join([CacheDir, "sets", witness_weave_store:digest([{Module, Key} || {Module, _, Key} <- Set])]).

find_set(Set, CacheDir) ->
    Dir = set_folder(Set, CacheDir),
    %% First mark it as used, then check that it exists. Also mark its modules, which another folder may be made from.
    _ = case witness_weave_cache_bound:mark_used(filename:join(Dir, ?WOVEN)) of
        renewed -> [witness_weave_cache_bound:mark_used(module_file(Key, CacheDir)) || {_, _, Key} <- Set];
        fresh -> []
    end,
    case read_set(Dir) of
        {ok, NotWoven} -> {Dir, NotWoven};
        none -> none
    end.

read_set(Dir) ->
    maybe
        {ok, {Sizes, NotWoven}} ?= witness_weave_store:term(filename:join(Dir, ?WOVEN)),
        true ?= lists:all(fun({Module, Size}) -> witness_weave_store:size(beam(Dir, Module)) =:= Size end, Sizes),
        {ok, NotWoven}
    else
        _ -> none
    end.

make_set(Set, CacheDir) ->
    Dir = set_folder(Set, CacheDir),
    New = witness_weave_store:temporary(Dir),
    witness_weave_store:folder(New),
    Results = [case read_module(Key, CacheDir) of
                   none -> throw({file, module_file(Key, CacheDir), enoent});
                   Stored -> {Module, Stored}
               end || {Module, _, Key} <- Set],
    Sizes = [{Module, byte_size(Woven)} || {Module, {woven, Woven}} <- Results],
    _ = [witness_weave_store:put_file(beam(New, Module), Woven) || {Module, {woven, Woven}} <- Results],
    NotWoven = [{Module, Reason} || {Module, {not_woven, Reason}} <- Results],
    witness_weave_store:put_file(filename:join(New, ?WOVEN), term_to_binary({Sizes, NotWoven})),
    place(New, Dir, Set, CacheDir),
    {Dir, NotWoven}.

%% Another process may have made the folder meanwhile. A damaged folder is replaced.
place(New, Dir, Set, CacheDir) ->
    case {file:rename(New, Dir), find_set(Set, CacheDir)} of
        {ok, _} -> ok;
        {{error, _}, none} ->
            Old = witness_weave_store:temporary(Dir),
            _ = file:rename(Dir, Old),
            Renamed = file:rename(New, Dir),
            _ = file:del_dir_r(Old),
            witness_weave_store:check_result(Renamed, Dir);
        {{error, _}, _} -> witness_weave_store:check_result(file:del_dir_r(New), New)
    end.

%% A damaged file is treated as a missing one.
read_module(Key, CacheDir) ->
    _ = witness_weave_cache_bound:mark_used(module_file(Key, CacheDir)),
    case witness_weave_store:term(module_file(Key, CacheDir)) of
        {ok, Stored} -> Stored;
        none -> none
    end.

beam(Dir, Module) -> filename:join(Dir, atom_to_list(Module) ++ ".beam").
