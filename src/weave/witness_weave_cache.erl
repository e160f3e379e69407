-module(witness_weave_cache).
-moduledoc """
Woven object code on disk, so that whole applications, OTP's included, are woven once.

```erlang
1> {ok, Ebins, NotWoven} = witness_weave_cache:prepare(["/usr/lib/erlang/lib/kernel-11.0/ebin"], Plan, CacheDir).
2> open_port({spawn, ["erl -pa " | Ebins]}, []).    % a VM that runs it, from its boot on
```

**What is found again.** A woven module has a key: the digest of its object code, of what of the plan concerns it, of
the weaver and its tables, and of the OTP that compiles it. The modules of a folder have one too, the digest of
theirs. So what was woven is used as long as nothing is different, whatever the times of files say, and a module that
has changed is woven alone.

```
CacheDir/modules/KEY              woven object code, or why there is none
CacheDir/sets/KEY/lists.beam ...  the woven modules of a folder: what a VM is given
CacheDir/sets/KEY/woven           which modules are there, with their sizes; which are not, with the reason
```

What nobody has used for a week is removed when all becomes too large (`m:witness_weave_cache_bound`).

**Whoever dies, whoever comes second.** Every file and folder is written under another name and renamed when it is
complete. Two that weave the same at the same time write the same. A folder in which a file is missing or has another
size is made anew.

Not woven, with the reason: what `m:witness_weave_forms` refuses (native functions, functions that run on loading, no
debug information), what is part of the VM, what the plan excepts, and Witness itself.
""".

-export([prepare/3, prepare/4, in_use/1, natives/1]).

-export_type([options/0, not_woven/0]).

-doc """
- `progress` is called when a module is woven, in any process: how many are, and how many have to be;
- `limit`: bytes that the cache may have before what is old is removed (1 GiB).
""".
-type options() :: #{progress => fun((Done :: non_neg_integer(), All :: non_neg_integer()) -> term()),
                     limit => non_neg_integer()}.

-doc "A module that is left as it is, with the reason.".
-type not_woven() :: {module(), witness_weave_error:reason() | {own | excepted | crashed, term()}}.

%% Raised when what is on disk gets another form.
-define(FORMAT, 1).
-define(WOVEN, "woven").

-doc "Weaves the modules of folders, and modules by their names, as far as the cache does not have them.".
-spec prepare([file:filename() | module()], witness_weave:plan(), file:filename()) ->
    {ok, [file:filename()], [not_woven()]} | {error, {file:filename(), file:posix()}}.
prepare(Sources, Plan, CacheDir) -> prepare(Sources, Plan, CacheDir, #{}).

-doc "The same, with options. The folders are in the order of the sources; all modules that are named are in one.".
-spec prepare([file:filename() | module()], witness_weave:plan(), file:filename(), options()) ->
    {ok, [file:filename()], [not_woven()]} | {error, {file:filename(), file:posix()}}.
prepare(Sources, Plan, CacheDir, Options) ->
    {Names, Dirs} = lists:partition(fun erlang:is_atom/1, Sources),
    Sets = [[named(Name) || Name <- Names] || Names =/= []] ++ [objects(Dir) || Dir <- Dirs],
    Base = digest({?FORMAT, tool(Plan), maps:without([natives], Plan)}),
    try
        [folder(filename:join(CacheDir, Part)) || Part <- ["modules", "sets"]],
        Keyed = [[{Module, Object, key(Object, Base, Plan)} || {Module, Object} <- Set] || Set <- Sets],
        Known = [known(Set, CacheDir) || Set <- Keyed],
        Wanted = lists:uniq(fun({_, _, Key}) -> Key end, lists:append([Set || {Set, none} <- lists:zip(Keyed, Known)])),
        ok = weave([Item || {_, _, Key} = Item <- Wanted, stored(Key, CacheDir) =:= none], Plan, CacheDir, Options),
        Done = [case Found of none -> made(Set, CacheDir); _ -> Found end || {Set, Found} <- lists:zip(Keyed, Known)],
        _ = [witness_weave_cache_bound:keep(CacheDir, maps:get(limit, Options, witness_weave_cache_bound:default()))
             || lists:member(none, Known)],
        {ok, [Dir || {Dir, _} <- Done], lists:append([NotWoven || {_, NotWoven} <- Done])}
    catch
        throw:{file, File, Reason} -> {error, {File, Reason}}
    end.

-doc "Whether a VM runs what is in one of these folders, and not the module of OTP as it is.".
-spec in_use([file:filename()]) -> ok | {error, {not_in_use, file:filename()}}.
in_use(Folders) ->
    Loaded = code:which(gen_server),
    case lists:member(filename:dirname(Loaded), Folders) of
        true -> ok;
        false -> {error, {not_in_use, Loaded}}
    end.

-doc "The exported functions of those modules of a folder that load native functions, in order.".
-spec natives(file:filename()) -> [mfa()].
natives(Dir) ->
    lists:sort([{Module, F, A} || {Module, {_, Binary}} <- objects(Dir), loads_nif(Module, Binary),
                                  {ok, {_, [{exports, Exports}]}} <- [beam_lib:chunks(Binary, [exports])],
                                  {F, A} <- Exports, F =/= module_info]).

%% Names stand in a file as they are, unless all of it is compressed. So few files have to be taken apart.
loads_nif(Module, Binary) -> may_name(~"load_nif", Binary) andalso imports_load_nif(Module, Binary).

may_name(Name, <<"FOR1", _/binary>> = Binary) -> binary:match(Binary, Name) =/= nomatch;
may_name(_, _) -> true.

imports_load_nif(Module, Binary) ->
    case beam_lib:chunks(Binary, [imports]) of
        {ok, {Module, [{imports, Imports}]}} -> lists:member({erlang, load_nif, 2}, Imports);
        _ -> false
    end.

%% --- what there is ---------------------------------------------------------------

objects(Dir) ->
    [{list_to_atom(filename:basename(File, ".beam")), {filename:join(Dir, File), read(filename:join(Dir, File))}}
     || File <- filelib:wildcard("*.beam", Dir)].

named(Module) ->
    case code:get_object_code(Module) of
        {Module, Binary, File} -> {Module, {File, Binary}};
        error -> {Module, {"", ~""}}
    end.

tool(Plan) ->
    Modules = [witness_weave, witness_weave_after, witness_weave_behaviour, witness_weave_behaviour_calls,
               witness_weave_calls, witness_weave_core, witness_weave_entry, witness_weave_expr, witness_weave_forms, compile,
               maps:get(calls, Plan, witness_weave_calls) | maps:get(tables, Plan, [])],
    {erlang:system_info(otp_release), erlang:system_info(version), [M:module_info(md5) || M <- Modules]}.

%% The names of the folder and of the file are none of what is woven.
key({_, Binary}, Base, Plan) ->
    digest({Base, erlang:md5(Binary), relevant(Binary, maps:get(natives, Plan, #{}))}).

%% Of the native functions those that the code can name, by their module or by their own name.
relevant(_, Natives) when map_size(Natives) =:= 0 ->
    #{};
relevant(Binary, Natives) ->
    case beam_lib:chunks(Binary, [atoms]) of
        {ok, {_, [{atoms, Atoms}]}} ->
            Named = maps:from_keys([Atom || {_, Atom} <- Atoms], []),
            maps:filter(fun({M, F, _}, _) -> is_map_key(M, Named) orelse is_map_key(F, Named) end, Natives);
        _ -> #{}
    end.

digest(Term) -> binary_to_list(binary:encode_hex(erlang:md5(term_to_binary(Term, [deterministic])), lowercase)).

%% --- weaving ---------------------------------------------------------------------

%% One process a scheduler; each takes the next module when it has done one. The largest come first, since who takes
%% the last one is waited for.
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
                write(module_file(Key, CacheDir), term_to_binary(woven(Item, Plan, Own))),
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
            Relevant = Plan#{natives => relevant(Original, maps:get(natives, Plan, #{}))},
            try witness_weave:prepare({Module, File, Original}, Relevant) of
                {ok, #{woven := Woven}} -> {woven, Woven};
                {error, Reason} -> {not_woven, Reason}
            catch
                %% A fault in the compiler, or ours, is one of this module, not of a whole system.
                _:Reason -> {not_woven, {crashed, {Module, Reason}}}
            end
    end.

%% Modules of this tool, wherever they lie.
own() ->
    Dir = filename:dirname(code:which(?MODULE)),
    #{list_to_atom(filename:basename(File, ".beam")) => [] || File <- filelib:wildcard("witness*.beam", Dir)}.

%% --- on disk ---------------------------------------------------------------------

module_file(Key, CacheDir) -> filename:join([CacheDir, "modules", Key]).

set_folder(Set, CacheDir) ->
    filename:join([CacheDir, "sets", digest([{Module, Key} || {Module, _, Key} <- Set])]).

known(Set, CacheDir) ->
    Dir = set_folder(Set, CacheDir),
    %% First that it is used, then whether it is there; with it the modules, which another folder is made from.
    _ = case witness_weave_cache_bound:used(filename:join(Dir, ?WOVEN)) of
        renewed -> [witness_weave_cache_bound:used(module_file(Key, CacheDir)) || {_, _, Key} <- Set];
        fresh -> []
    end,
    maybe
        {ok, Binary} ?= file:read_file(filename:join(Dir, ?WOVEN)),
        {ok, {Sizes, NotWoven}} ?= decoded(Binary),
        true ?= lists:all(fun({Module, Size}) -> filelib:file_size(beam(Dir, Module)) =:= Size end, Sizes),
        {Dir, NotWoven}
    else
        _ -> none
    end.

made(Set, CacheDir) ->
    Dir = set_folder(Set, CacheDir),
    New = temporary(Dir),
    folder(New),
    Results = [case stored(Key, CacheDir) of
                   none -> throw({file, module_file(Key, CacheDir), enoent});
                   Stored -> {Module, Stored}
               end || {Module, _, Key} <- Set],
    Sizes = [{Module, byte_size(Woven)} || {Module, {woven, Woven}} <- Results],
    _ = [put_file(beam(New, Module), Woven) || {Module, {woven, Woven}} <- Results],
    NotWoven = [{Module, Reason} || {Module, {not_woven, Reason}} <- Results],
    put_file(filename:join(New, ?WOVEN), term_to_binary({Sizes, NotWoven})),
    placed(New, Dir, Set, CacheDir),
    {Dir, NotWoven}.

%% Somebody may have made it meanwhile. One that is damaged makes room.
placed(New, Dir, Set, CacheDir) ->
    case {file:rename(New, Dir), known(Set, CacheDir)} of
        {ok, _} -> ok;
        {{error, _}, none} ->
            Old = temporary(Dir),
            _ = file:rename(Dir, Old),
            Renamed = file:rename(New, Dir),
            _ = file:del_dir_r(Old),
            done(Renamed, Dir);
        {{error, _}, _} -> done(file:del_dir_r(New), New)
    end.

%% A file that is damaged is as good as none.
stored(Key, CacheDir) ->
    _ = witness_weave_cache_bound:used(module_file(Key, CacheDir)),
    maybe
        {ok, Binary} ?= file:read_file(module_file(Key, CacheDir)),
        {ok, Stored} ?= decoded(Binary),
        Stored
    else
        _ -> none
    end.

decoded(Binary) ->
    try {ok, binary_to_term(Binary)} catch error:badarg -> damaged end.

beam(Dir, Module) -> filename:join(Dir, atom_to_list(Module) ++ ".beam").

folder(Dir) ->
    done(filelib:ensure_path(Dir), Dir),
    done(file:change_mode(Dir, 8#700), Dir).

%% No two write to the same name.
write(File, Binary) ->
    Temporary = temporary(File),
    put_file(Temporary, Binary),
    done(file:rename(Temporary, File), File).

put_file(File, Binary) -> done(file:write_file(File, Binary), File).

read(File) ->
    case file:read_file(File) of
        {ok, Binary} -> Binary;
        {error, Reason} -> throw({file, File, Reason})
    end.

temporary(File) ->
    lists:flatten(io_lib:format("~ts.~ts.~w", [File, os:getpid(), erlang:unique_integer([positive])])).

done(ok, _) -> ok;
done({error, Reason}, File) -> throw({file, File, Reason}).
