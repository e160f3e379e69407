-module(witness_replay_code).
-moduledoc """
Prepares the code that a replay runs: the modules of the recording, woven for a replay.

The header of a recording names the folders, and the digest of each module in them. *Invariant:* the code that the recording
names is the code that runs, or the difference is reported before anything runs. The plan is that of `m:witness_replay_calls`,
and its table of calls has to be the recorded one.
""".

-export([prepare/2]).

-export_type([code/0]).

-doc """
- `woven`: folders with woven modules;
- `path`: the folders in which the VM of the replay looks for code while it boots, and those afterwards;
- `handler`: the folder of a woven `error_handler`;
- `calls`: the numbers of calls;
- `changed`: modules that were loaded in the recording and have changed since;
- `kept`: the modules that have changed in their folders, or `all`, if the code is that which is kept with the recording;
- `observed`: the functions that report their calls.
""".
-type code() :: #{woven := [file:filename()], path := {Boot :: [file:filename()], Later :: [file:filename()]},
                  handler := file:filename(),
                  calls := #{mfa() => non_neg_integer()}, changed := [module()],
                  kept => [module()] | all, observed := witness_replay_functions:observed()}.

-doc """
Weaves the modules that the cache does not have. They are those of the folders of the recording; or if these are gone or have changed,
those that are kept with it. If the option `pa` is set, its folders replace those of the recording. With `allow_changed` the
folders count as they are.
""".
-spec prepare(witness_log_recording:recording(), witness_replay:options()) ->
    {ok, code()} | {error, witness_replay:error()}.
prepare(Recording, Options) ->
    Header = witness_log_recording:header(Recording),
    maybe
        #{code := #{pa := Recorded}, digests := _} ?= Header,
        {ok, Loaded} ?= witness_log_recording:modules(Recording),
        Found = read(maps:get(pa, Options, Recorded), Header, Loaded, Options),
        {ok, {Objects, Code}} ?= choose(Found, Header, Loaded, Options),
        woven(Objects, Code, Loaded, Options)
    else
        {error, _} = Error -> Error;
        #{} -> {error, {witness_replay, no_code}}
    end.

%% The kept code, if that of the folders cannot be used.
choose({ok, {_, #{changed := []}}} = Found, _, _, _) -> Found;
choose(Found, _, _, Options) when is_map_key(pa, Options); map_get(allow_changed, Options) -> Found;
choose(Found, Header, Loaded, #{dir := Dir} = Options) ->
    case witness_record_kept:unpack(Dir, witness_record_code:cache(maps:with([cache], Options))) of
        {ok, Folders} ->
            maybe
                {ok, {Objects, Code}} ?= read(Folders, Header, Loaded, Options),
                ok ?= named(Objects, Folders, Header, Dir),
                {ok, {Objects, Code#{kept => case Found of {ok, {_, #{changed := Changed}}} -> Changed; {error, _} -> all end}}}
            end;
        none -> Found;
        {error, {File, Text}} -> {error, {witness_replay, {kept, File, Text}}}
    end.

%% To trust a recording is to trust the digests of its header, and what is kept comes from outside.
named(Objects, Folders, #{digests := Digests}, Dir) ->
    case [Module || #{dir := Of, digests := Kept} <- Objects, lists:member(Of, Folders), {Module, Digest} <- Kept,
                    maps:get(Module, Digests, none) =/= Digest] of
        [] -> ok;
        [Module | _] ->
            Text = [~"its module ", witness_event:format_term(Module, 100), ~" is not one that was recorded"],
            {error, {witness_replay, {kept, witness_record_kept:file(Dir), Text}}}
    end.

%% The modules in these folders and those of applications, with the plan, and which of them have changed.
read(Folders, #{code := #{weave := Weave}, digests := Digests} = Header, Loaded, Options) ->
    maybe
        %% The folders of the recording, including those of applications that were outside.
        Given = maps:merge(maps:with([run, app, applications], Header),
                           #{pa => Folders, weave => Weave, dir => "",
                             outside => maps:get(outside, maps:get(options, Header, #{}), [])}),
        ok ?= there(Folders),
        {ok, Objects} ?= objects(Given, Options),
        {ok, Observed} ?= observed(Objects, witness_record_code:user(Given), Options),
        Code = #{calls := Calls} = plan(Objects, Observed),
        ok ?= same_calls(Calls, maps:get(calls, Header)),
        Now = witness_record_code:digests(Objects),
        Changed = [Module || Module := Digest <- Digests, concerns(Module, Loaded), maps:get(Module, Now, none) =/= Digest],
        {ok, {Objects, Code#{changed => lists:sort(Changed)}}}
    end.

there(Dirs) ->
    case [Dir || Dir <- Dirs, not filelib:is_dir(Dir)] of
        [] -> ok;
        [Dir | _] -> {error, {witness_replay, {folder, Dir}}}
    end.

objects(Given, Options) ->
    maybe
        {ok, Dirs} ?= witness_record_code:folders(Given),
        {ok, Objects} ?= witness_record_code:objects(Dirs, Options),
        {ok, Objects}
    else
        {error, Reason} -> {error, {witness_record, Reason}}
    end.

observed(Objects, User, Options) ->
    case witness_replay_functions:observe(maps:get(functions, Options, #{}), Objects, User) of
        {ok, Observed} -> {ok, Observed};
        {refused, Refused} -> {error, {witness_replay, {functions, Refused}}}
    end.

plan(Objects, #{functions := Functions} = Observed) ->
    Plan = witness_replay_calls:plan(Objects),
    #{plan => Plan#{functions => witness_replay_functions:woven(Functions)}, calls => witness_record_calls:calls(Plan),
      observed => Observed}.

%% The replay asks for the calls that the log answers. It does not ask for calls that were added to the table since.
same_calls(Now, Recorded) ->
    case {maps:without(maps:keys(Now), Recorded), maps:without(witness_record_calls:added() ++ maps:keys(Recorded), Now)} of
        {None, None} when map_size(None) =:= 0 -> ok;
        _ -> {error, {witness_replay, {calls, lists:sublist(maps:keys(maps:without(maps:keys(Now), Recorded))
                                                                ++ maps:keys(maps:without(maps:keys(Recorded), Now)), 5)}}}
    end.

%% If the recording has no end, the loaded modules are not known.
concerns(_, []) -> true;
concerns(Module, Loaded) -> lists:keymember(Module, 1, Loaded).

woven(Objects, #{plan := Plan} = Code, Loaded, Options) ->
    maybe
        {ok, #{left := Left, woven := Dirs, plain := Plain, handler := Handler}} ?=
            witness_record_code:woven(Objects, Plan, maps:with([cache, on_progress], Options)),
        [] ?= [Module || {Module, _} <- Left, concerns(Module, Loaded)],
        {ok, (maps:remove(plan, Code))#{woven => Dirs, path => path(Objects, Dirs, Plain), handler => Handler}}
    else
        {error, Reason} -> {error, {witness_record, Reason}};
        [_ | _] = Unwoven -> {error, {witness_replay, {unwoven, [{Module, unknown} || Module <- Unwoven]}}}
    end.

%% The VM boots before it checks the code that it loads. So while it boots, it must find the modules of `kernel' and `stdlib',
%% woven or not, before modules of the same names in other folders. A recording may have chosen the names and contents of those.
%% Afterwards the order is the recorded one: a program may have a module with the name of one of `stdlib'.
path(Objects, Dirs, Plain) ->
    Otp = [Dir || {#{dir := Original}, Dir} <- lists:zip(Objects, Dirs),
           filename:dirname(filename:dirname(Original)) =:= code:lib_dir()],
    {Otp ++ [filename:join(code:lib_dir(App), "ebin") || App <- [kernel, stdlib]], Dirs ++ Plain}.
