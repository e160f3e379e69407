-module(witness_record).
-moduledoc """
Records a program: runs it in a VM of its own, and records what a replay of this run needs.

```erlang
1> witness_record:record(#{run => {shop, demo, [10]}, pa => ["ebin"], dir => "shop.rec"}).
{ok,#{outcome => recorded,ended => {returned,normal},processes => 12,entries => 3107,...}}
2> {ok, Recording} = witness_log_recording:open("shop.rec").
```

The program is not changed. Its modules and those of OTP run as woven copies (`m:witness_weave_cache`). These record the
message that each `receive` takes, and the results of calls that cannot be computed again. Witness makes the copies once, and
keeps them in a folder of the cache. The VM is a child of this one, with the same standard input, output and error. It gets
its instructions over a pipe (`m:witness_record_vm`). Guide: `docs/record.md`; files: `docs/internals/record.md`.

## Errors

A mistake of the user is returned as `{error, {witness_record, Reason}}` before anything runs; `format_error/1` makes text of the
reason. How the program ends is not an error: a crash is recorded like everything else.
""".

-export([record/1, start/1, await/2, stop/1, keep/1, new_name/1, format_error/1]).

-export_type([options/0, recording/0, summary/0, ended/0, reason/0, error/0]).

-doc """
- `run` or `app`: the function to call, or the application to start with all that it needs. Exactly one of them is required;
- `dir`: the folder of the recording, required. It is created; it may exist if it is empty;
- `pa`: folders of compiled modules, the first one first. They are woven;
- `weave`: applications of OTP that are woven besides `kernel`, `stdlib` and those that the program names (see
  `m:witness_record_code`) or calls (`m:witness_record_needs`);
- `applications`: started before the function of `run` is called, and recorded too;
- `outside`: applications that are started before anything is recorded, so that none of their processes is (see
  `m:witness_record_source`). They are woven, so that they do not pass on the sender of a message;
- `environment`: parameters of applications, as for `application:set_env/2`. They take precedence over those in files;
- `config`: a `sys.config` file for the VM;
- `contents`, `hash`: record each message too, or a hash of it;
- `times`: record the time of each entry too. Then `contents` is set, since a message that is sent has no entry otherwise;
- `full_ids`: identifiers of processes take eight bytes each, to measure what short ones save;
- `tracing_only`: nothing is woven. The recording has births, ends, and the order in which messages arrived, from the VM's own
  tracing (`m:witness_record_traced`). It can be read, and monitored with `contents`, but not replayed;
- `signatures`: rows for signatures (`m:witness_event_wrapper`), which the recording keeps (those of `config :witness, signatures: [...]`,
  the parameter `signatures` of the application `witness`);
- `keep_code`: whether the modules of `pa` are kept with the recording (true; `m:witness_record_kept`);
- `compress`: whether the files are compressed (true);
- `budget`: bytes that may wait to be written. If more wait, since the disk is slower than the program, the recording ends;
- `last`: keep only the last part, `{bytes, N}` (at least a million) or `{seconds, N}`, in memory. It is written at the end and
  by `keep/1`, with contents. Such a recording begins late: it can be read and monitored, but not replayed;
- `syntax`: the notation of texts: that of the module that has failed (`auto`), or always that of `erlang` or `elixir`;
- `vm_args`: further arguments of the VM, such as `["+S", "1:1"]`;
- `cache`: the folder that keeps woven modules;
- `on_progress`: called with what has been done, as text;
- `observer`: a module with the behaviour `m:witness_record_node`, and its argument. It observes the program in its VM, and
  is not part of it (`m:witness_recorded_run` monitors the program this way). It requires `on_told`, which is called with each
  term that the observer reports.
""".
-type options() :: #{run => {module(), Function :: atom(), Args :: [term()]}, app => atom(), dir := file:filename(),
                     pa => [file:filename()], weave => [atom()], applications => [atom()], outside => [atom()],
                     environment => [{atom(), [{atom(), term()}]}], config => file:filename(), contents => boolean(),
                     hash => boolean(), syntax => auto | witness_event:syntax(),
                     times => boolean(), full_ids => boolean(), compress => boolean(), tracing_only => boolean(),
                     keep_code => boolean(), signatures => [witness_event_wrapper:row()],
                     budget => pos_integer(),
                     last => {bytes | seconds, pos_integer()}, vm_args => [string()], cache => file:filename(),
                     on_progress => fun((unicode:chardata()) -> term()),
                     observer => {module(), term()}, on_told => fun((term()) -> term())}.

-doc "A program that is being recorded: the process that controls its VM.".
-type recording() :: pid().

-doc """
How the program ended: its first process, with the reason; the application; the VM, by `halt` or `init:stop`; or it was
stopped. Reasons are `normal`, or text.
""".
-type ended() :: {returned, Reason :: term()} | {stopped, application, Reason :: term()} | halted | stopped.

-doc """
- `outcome`: `recorded`, or `{ended, Reason}` if the recording ended before the program: then it is correct, but incomplete;
- `ended`: how the program ended;
- `vm`: the exit status of its VM; one above 128 is that of a signal;
- `unwoven`: modules without native code that were loaded unwoven, so that what they do is not recorded. They have no debug
  information, come from folders that were not named, or were made by the program;
- `refused`: why it cannot be replayed. If the VM ended without notice, only the reasons in the header are known;
- `observed`: the result of the `observer`;
- `not_kept`: why the code is not kept with the recording, if it could not be written;
- `unsealed`: why the recording has no seal, if it has none: then a replay needs trust (`m:witness_record_seal`);
- `born`, `files`: how many processes were recorded, and what was written (`m:witness_record_writer`). Not known if the VM
  ended without notice.
""".
-type summary() :: #{outcome := recorded | {ended, term()}, ended := ended(), vm := non_neg_integer(),
                     unwoven := [module()],
                     refused => [witness_log_recording_refusal:reason()],
                     observed => term(), not_kept => file:posix() | badarg | terminated | system_limit,
                     unsealed => witness_record_seal:error(), born => non_neg_integer(),
                     files => witness_record_writer:summary()}.

-doc "What was wrong with the options, or with what they name.".
-type reason() :: no_program | {exclusive, atom(), atom()}
                | {dir, file:filename(), exists | file:posix()} | {folder, file:filename()}
                | {file, file:filename_all(), file:posix() | badarg | terminated}
                | {config, file:filename(), term()}
                | {application, atom(), not_found | {not_started, term()}} | {weave, term()} | {vm, term()} | {native, term()}
                | {observer, term()}.

-type error() :: {?MODULE, reason()} | witness_option:error() | witness_event_wrapper:error().

%% Bytes that are kept in memory at most, if the limit is a time.
-define(MAX_LAST_BYTES, 1 bsl 28).

-doc "Records a program to its end.".
-spec record(options()) -> {ok, summary()} | {error, error()}.
record(Options) ->
    maybe
        {ok, Recording} ?= start(Options),
        await(Recording, infinity)
    end.

-doc """
Weaves what is not in the cache, and starts the program. If the caller ends, the recording is finished, and its VM ends.
""".
-spec start(options()) -> {ok, recording()} | {error, error()}.
start(Options) ->
    maybe
        ok ?= witness_option:check(Options, witness_option_schema:record()),
        ok ?= check_observer(Options),
        {ok, Complete} ?= witness_event_wrapper:for_recording(Options),
        add_module(start_vm(Complete))
    end.

%% Within this layer errors have no module.
add_module({error, Reason}) -> {error, {?MODULE, Reason}};
add_module({ok, _} = Result) -> Result.

start_vm(Options) ->
    maybe
        ok ?= check_together(Options),
        ok ?= check_files(Options),
        Complete = add_needed(memory_limit(timed(Options))),
        {ok, Code} ?= code(Complete),
        ok ?= make_folder(Complete),
        remove_refused(witness_record_vm:start(Complete, Code), maps:get(dir, Options))
    end.

%% The program has not begun. The folder was empty, or not there.
remove_refused({error, {observer, _}} = Error, Dir) ->
    _ = file:del_dir_r(Dir),
    Error;
remove_refused(Result, _) -> Result.

add_needed(Options) ->
    case witness_record_needs:apps(Options) of
        [] -> Options;
        Apps -> Options#{weave => lists:uniq(maps:get(weave, Options, []) ++ Apps)}
    end.

code(#{tracing_only := true} = Options) -> witness_record_traced:prepare(Options);
code(Options) -> witness_record_code:prepare(Options).

timed(#{times := true} = Options) -> Options#{contents => true};
timed(Options) -> maps:remove(times, Options).

%% A limit by time has a bound in bytes, too.
memory_limit(#{last := {bytes, Bytes}} = Options) -> Options#{contents => true, last := #{bytes => Bytes, time => infinity}};
memory_limit(#{last := {seconds, Seconds}} = Options) ->
    Options#{contents => true, last := #{bytes => ?MAX_LAST_BYTES, time => Seconds * 1000}};
memory_limit(Options) -> Options.

-doc "Waits for the end of the program. With the reason `timeout` it goes on.".
-spec await(recording(), timeout()) -> {ok, summary()} | {error, error() | {?MODULE, timeout}}.
await(Recording, Timeout) -> add_module(witness_record_vm:await(Recording, Timeout)).

-doc """
Writes the last part now, with the option `last`, and returns its folder: `kept-1`, `kept-2` and so on, in that of the
recording. The reason of an error is `busy`: another part is being written; `enough`: a hundred were written; `ended`: the
recording is over, or it has no last part; or it is that of a file that could not be written.
""".
-spec keep(recording()) -> {ok, file:filename()} | {error, {?MODULE, busy | enough | ended | witness_record_writer:reason()}}.
keep(Recording) -> add_module(witness_record_vm:keep(Recording)).

-doc "Finishes the recording, and ends the program. `await/2` then returns the summary.".
-spec stop(recording()) -> ok.
stop(Recording) -> witness_record_vm:stop(Recording).

%% --- options ---------------------------------------------------------------------

check_observer(#{observer := _} = Options) when not is_map_key(on_told, Options) ->
    {error, {witness_option, {missing_option, on_told}}};
check_observer(#{}) -> ok.

check_together(#{run := _, app := _}) -> {error, {exclusive, run, app}};
check_together(#{tracing_only := true, weave := [_ | _]}) -> {error, {exclusive, tracing_only, weave}};
check_together(#{} = Options) when is_map_key(run, Options); is_map_key(app, Options) -> ok;
check_together(#{}) -> {error, no_program}.

check_files(Options) ->
    maybe
        ok ?= first_error([folder(Dir) || Dir <- maps:get(pa, Options, [])]),
        ok ?= first_error([config(File) || #{config := File} <- [Options]]),
        empty(maps:get(dir, Options))
    end.

first_error(Results) -> hd([Error || {error, _} = Error <- Results] ++ [ok]).

folder(Dir) ->
    case filelib:is_dir(Dir) of
        true -> ok;
        false -> {error, {folder, Dir}}
    end.

config(File) ->
    case file:consult(File) of
        {ok, _} -> ok;
        {error, Reason} -> {error, {config, File, Reason}}
    end.

empty(Dir) ->
    case file:list_dir_all(Dir) of
        {ok, []} -> ok;
        {ok, _} -> {error, {dir, Dir, exists}};
        {error, enoent} -> ok;
        {error, enotdir} -> {error, {dir, Dir, exists}};
        {error, Reason} -> {error, {dir, Dir, Reason}}
    end.

%% Only this account may read the contents of messages.
make_folder(#{dir := Dir}) ->
    maybe
        ok ?= filelib:ensure_path(Dir),
        ok ?= file:change_mode(Dir, 8#700)
    else
        {error, Reason} -> {error, {dir, Dir, Reason}}
    end.

-doc "A name for the folder of a recording, after the time and a word that no other recording of this second has.".
-spec new_name(unicode:chardata()) -> string().
new_name(Word) ->
    {{Y, Mo, D}, {H, Mi, S}} = calendar:local_time(),
    lists:flatten(io_lib:format("recording-~4..0b~2..0b~2..0b-~2..0b~2..0b~2..0b-~ts", [Y, Mo, D, H, Mi, S, Word])).

-doc "An error as text.".
-spec format_error(reason() | timeout | busy | enough | ended | witness_record_writer:reason()) -> unicode:chardata().
format_error(no_program) -> ~"option run, or app, is expected, and not there";
format_error({exclusive, A, B}) ->
    [~"options ", atom_to_binary(A), ~" and ", atom_to_binary(B), ~" exclude each other"];
format_error({dir, Dir, exists}) ->
    [name(Dir), ~": a recording needs a folder that is empty, or not there yet"];
format_error({dir, Dir, Reason}) -> [name(Dir), ~": ", file:format_error(Reason)];
format_error({file, File, Reason}) -> [name(File), ~": ", file:format_error(Reason), ~"; nothing was recorded"];
format_error({folder, Dir}) -> [~"there is no folder ", name(Dir)];
format_error({config, File, Reason}) -> [name(File), ~": ", file:format_error(Reason)];
format_error({application, App, not_found}) ->
    [~"there is no application ", witness_event:format_term(App, 100), ~" in the folders of code"];
format_error({application, App, {not_started, Reason}}) ->
    [~"the application ", witness_event:format_term(App, 100), ~" does not start: ", witness_event:format_term(Reason, 500)];
format_error({weave, {File, Reason}}) when is_list(File), is_atom(Reason) ->
    [~"modules cannot be woven: ", name(File), ~": ", file:format_error(Reason)];
format_error({weave, Reason}) -> [~"modules cannot be woven: ", witness_event:format_term(Reason, 500)];
format_error({native, Reason}) ->
    [~"recording needs native code, which could not be loaded: ", witness_event:format_term(Reason, 500)];
format_error({observer, Reason}) -> [~"the program cannot be observed: ", witness_event:format_term(Reason, 500)];
format_error({vm, Reason}) -> [~"the VM of the program could not be started: ", witness_event:format_term(Reason, 500)];
format_error(timeout) -> ~"the program still runs";
format_error(busy) -> ~"another part is being written";
format_error(enough) -> ~"a hundred parts were written";
format_error(ended) -> ~"the recording is over, or it has no last part";
format_error(Reason) -> [~"the part could not be written: ", witness_event:format_term(Reason, 500)].

name(Name) ->
    case unicode:characters_to_binary(Name) of
        Text when is_binary(Text) -> Text;
        _ -> witness_event:format_term(Name, 500)
    end.
