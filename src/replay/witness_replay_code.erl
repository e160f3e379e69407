-module(witness_replay_code).
-moduledoc """
Which code a replay runs: that of the recording, woven for a replay.

The header of a recording names the folders, and the digest of each module in them. What has changed since is told before
anything runs.
""".

-export([prepare/2]).

-export_type([code/0]).

-doc """
Folders with woven modules, and those with modules as they are; the folder of a woven `error_handler`; the numbers of calls;
modules that were loaded in the recording and are not the same any more.
""".
-type code() :: #{woven := [file:filename()], plain := [file:filename()], handler := file:filename(),
                  calls := #{mfa() => non_neg_integer()}, changed := [module()]}.

-doc "Weaves what the cache does not have. `pa` stands in for the folders of the recording.".
-spec prepare(witness_log_recording:recording(), witness_replay:options()) ->
    {ok, code()} | {error, witness_replay:reason()}.
prepare(Recording, Options) ->
    Header = witness_log_recording:header(Recording),
    maybe
        #{code := #{pa := Recorded, weave := Weave}, digests := Digests} ?= Header,
        %% The same folders as while it was recorded, those of applications that were outside included.
        Given = maps:merge(maps:with([run, app, applications], Header),
                           #{pa => maps:get(pa, Options, Recorded), weave => Weave, dir => "",
                             outside => maps:get(outside, maps:get(options, Header, #{}), [])}),
        ok ?= there(maps:get(pa, Given)),
        {ok, Objects} ?= objects(Given, Options),
        {ok, Loaded} ?= witness_log_recording:modules(Recording),
        {ok, []} ?= witness_log_recording:unwoven(Recording),
        Code = #{calls := Calls} = plan(Objects),
        ok ?= same_calls(Calls, maps:get(calls, Header)),
        Now = witness_record_code:digests(Objects),
        Changed = [Module || Module := Digest <- Digests, concerns(Module, Loaded), maps:get(Module, Now, none) =/= Digest],
        woven(Objects, Code#{changed => lists:sort(Changed)}, Loaded, Options)
    else
        {error, #{what := _} = Damage} -> {error, {recording, Damage}};
        {error, _} = Error -> Error;
        {ok, Unwoven} -> {error, {unwoven, Unwoven}};
        #{} -> {error, no_code}
    end.

there(Dirs) ->
    case [Dir || Dir <- Dirs, not filelib:is_dir(Dir)] of
        [] -> ok;
        [Dir | _] -> {error, {folder, Dir}}
    end.

objects(Given, Options) ->
    maybe
        {ok, Dirs} ?= witness_record_code:folders(Given),
        {ok, Objects} ?= witness_record_code:objects(Dirs, Options),
        {ok, Objects}
    else
        {error, Reason} -> {error, {code, Reason}}
    end.

plan(Objects) ->
    Plan = witness_replay_calls:plan(Objects),
    #{plan => Plan, calls => witness_record_calls:calls(Plan)}.

%% What the log answers is what is asked for. What was added since is not asked for.
same_calls(Now, Recorded) ->
    Calls = lists:sort(maps:keys(Recorded)),
    Known = maps:keys(Now),
    case lists:member(Calls, [lists:sort(Known), lists:sort(Known -- witness_record_calls:added())]) of
        true -> ok;
        false -> {error, {calls, lists:sublist(maps:keys(maps:without(maps:keys(Now), Recorded))
                                               ++ maps:keys(maps:without(maps:keys(Recorded), Now)), 5)}}
    end.

%% Where there was no end, nobody knows which modules were loaded.
concerns(_, []) -> true;
concerns(Module, Loaded) -> lists:keymember(Module, 1, Loaded).

woven(Objects, #{plan := Plan} = Code, Loaded, Options) ->
    maybe
        {ok, #{left := Left} = Woven} ?= witness_record_code:woven(Objects, Plan, maps:with([cache, on_progress], Options)),
        [] ?= [Module || Module <- Left, lists:keymember(Module, 1, Loaded)],
        {ok, maps:merge(maps:remove(plan, Code), maps:remove(left, Woven))}
    else
        {error, _} = Error -> Error;
        [_ | _] = Unwoven -> {error, {unwoven, Unwoven}}
    end.
