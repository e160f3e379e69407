-module(witness_run_application).
-moduledoc """
Applications as systems: checks an application before it is started, starts it, and reports how it has ended.

The application controller starts an application's processes, whichever process asks for it. So every process of the node
is observed first, and then a process of Witness, which is not observed, asks for the start. Every process that is spawned
from then on is seen from its first event.

An application has ended when its application master has ended, the last of its processes. The reason
is that of the application: `normal` when it was stopped, `shutdown` also when its top supervisor gave up.
""".

-export([check/1, start_link/2, format_end/1, format_error/1]).
-export([init/3]).

-export_type([what/0, end_reason/0, reason/0, error/0]).

-doc "What to report: the end of the application, or only that all of them have started.".
-type what() :: {application, atom()} | {applications, [atom()]}.

-doc """
How the application has ended. `not_started`: it, or one that it needs, did not start; the applications that were started
for it have been stopped again. `unknown`: it ended while it was being started, and the reason is not known.
""".
-type end_reason() :: {not_started, Application :: atom(), Reason :: term()} | unknown | term().

-doc """
Why an application cannot be run as a system.

- `{no_application, App, Similar}`: there is no such file on the code path;
- `{application_file, File, Text}`: the file is wrong;
- `{running_already, App}`;
- `{library_application, App}`: it has no processes, so it would never end;
- `{not_started, App, Reason}`: it, or one that it needs, did not start.
""".
-type reason() :: {no_application, atom(), Similar :: [string()]} | {application_file, file:filename(), unicode:chardata()}
                | {running_already | library_application, atom()} | {not_started, atom(), term()}.

-type error() :: {?MODULE, reason()}.

-doc "Whether an application can be run as a system.".
-spec check(atom()) -> ok | {error, error()}.
check(App) ->
    maybe
        {ok, Keys} ?= keys(App),
        ok ?= check_not_running(App),
        case proplists:get_value(mod, Keys, []) of
            [] -> {error, {?MODULE, {library_application, App}}};
            _ -> ok
        end
    end.

%% An application may also have been loaded without a file. Nothing is loaded here that has to be unloaded.
keys(App) ->
    case application:get_all_key(App) of
        {ok, Keys} -> {ok, Keys};
        undefined -> read(App, code:where_is_file(atom_to_list(App) ++ ".app"))
    end.

read(App, non_existing) -> {error, {?MODULE, {no_application, App, similar_names(atom_to_list(App))}}};
read(App, File) ->
    case file:consult(File) of
        {ok, [{application, App, Keys}]} when is_list(Keys) -> {ok, Keys};
        {ok, _} -> {error, {?MODULE, {application_file, File, ["{application, ", atom_to_binary(App), ", [...]} is expected"]}}};
        {error, Reason} -> {error, {?MODULE, {application_file, File, file:format_error(Reason)}}}
    end.

check_not_running(App) ->
    case lists:keymember(App, 1, application:which_applications()) of
        true -> {error, {?MODULE, {running_already, App}}};
        false -> ok
    end.

similar_names(Name) ->
    Names = lists:usort([filename:basename(File, ".app") || Folder <- code:get_path(),
                                                            File <- filelib:wildcard("*.app", Folder)]),
    Near = [{Likeness, Other} || Other <- Names, Likeness <- [string:jaro_similarity(Name, Other)], Likeness > 0.8],
    [Other || {_, Other} <- lists:sublist(lists:reverse(lists:sort(Near)), 3)].

-doc """
Starts applications with all that they need, one after the other, for the run that calls. The run receives

- `{applications_started, Pid}`, and then for `{application, App}`, when that has ended, `{system_ended, Reason}`;
- or `{not_started, Reason}`.
""".
-spec start_link(what(), Run :: pid()) -> pid().
start_link({application, App}, Run) -> spawn_link(?MODULE, init, [[App], [App], Run]);
start_link({applications, Apps}, Run) -> spawn_link(?MODULE, init, [Apps, [], Run]).

-doc false.
-spec init([atom()], [atom()], pid()) -> term().
init(Apps, Awaited, Run) ->
    proc_lib:set_label(witness_run_application),
    case application:ensure_all_started(Apps) of
        {ok, _} ->
            Monitors = [monitor(process, master(App)) || App <- Awaited],
            Run ! {applications_started, self()},
            await({Monitors, Run});
        {error, {App, Reason}} -> Run ! {not_started, {not_started, App, Reason}}
    end.

%% The master of an application that has ended meanwhile may be unknown. No process has the returned name.
master(App) ->
    case application_controller:get_master(App) of
        undefined -> witness_application_ended;
        Master -> Master
    end.

await({[], _}) -> ok;
await({[Ref | Monitors], Run} = A) ->
    receive
        {'DOWN', Ref, process, _, Reason} ->
            Run ! {system_ended, end_reason(Reason)},
            await({Monitors, Run});
        {system, From, Request} -> witness_event_process:system(Request, From, fun await/1, A)
    end.

end_reason(noproc) -> unknown;
end_reason(Reason) -> Reason.

-doc "What a run should say about the end of its application, unless that was normal.".
-spec format_end(end_reason()) -> undefined | unicode:chardata().
format_end({not_started, _, _} = Reason) -> format_error(Reason);
format_end(unknown) -> "the application ended while it was being started";
format_end(shutdown) ->
    "the application ended with shutdown: its top supervisor gave up restarting, or was told to end";
format_end(_) -> undefined.

format_not_started(_, {"no such file or directory", File}) -> ["there is no ", File, " on the code path"];
format_not_started(_, {bad_return, {{Module, _, _}, {'EXIT', Reason}}}) ->
    ["its start function crashed: ", witness_event:format_reason(Reason, 400, witness_event:syntax([Module]))];
format_not_started(App, {Reason, {Module, start, [normal, _]}}) ->
    Syntax = witness_event:syntax([Module]),
    [witness_event:format_function({Module, start, 2}, Syntax), " of ", atom_to_binary(App), " returned the error ",
     witness_event:format_reason(Reason, 400, Syntax)];
format_not_started(_, Reason) -> witness_event:format_term(Reason, 400).

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({no_application, App, Similar}) ->
    [io_lib:format("there is no application ~ts on the code path (~ts.app; --pa names its folder)", [App, App]),
     [["; did you mean ", lists:join(" or ", Similar), "?"] || Similar =/= []]];
format_error({application_file, File, Reason}) ->
    [File, ": ", Reason];
format_error({running_already, App}) ->
    io_lib:format("the application ~ts is running already: stop it first, or attach to it as it is: "
                  "{attach, [{application, ~ts}]}",
                  [App, App]);
format_error({library_application, App}) ->
    io_lib:format("the application ~ts is a library: it starts no processes; name a function to run", [App]);
format_error({not_started, App, Reason}) ->
    ["the application ", atom_to_binary(App), " did not start: ", format_not_started(App, Reason)].
