-module(witness_replay_trust).
-moduledoc """
Shows what a recording would have a replay run: the call, the folders, and the modules with their digests. From that a person
can decide whether it may run. *Invariant:* nothing of the recording is loaded.

A header is data from outside. What a replay uses of it has to have the form that the recorder gives it, or the recording is
refused (`check/1`). So folders are absolute, and do not depend on where a command is given. `m:witness_replay` calls this
module before it prepares the code.
""".

-export([check/1, named/1, format/2]).

-export_type([named/0]).

-doc """
- `call`: the function, or the application, as text; `none`: the header names none;
- `folders`: of the modules;
- `modules`: those that differ from the modules of this Erlang/OTP, with the digest of each (`witness_weave_objects:digest/1`);
  `otp`: the number of those that do not differ.
""".
-type named() :: #{call := binary() | none, folders := [term()], modules := [{module(), binary()}], otp := non_neg_integer()}.

%% Lines of a list, and characters of a line.
-define(MAX_LINES, 100).
-define(MAX_TERM_CHARS, 300).

-doc "Whether the header has what a replay needs, in the right form.".
-spec check(map()) -> ok | {error, {witness_replay, no_code | {header, unicode:chardata()}}}.
check(#{code := Code, digests := Digests, calls := Calls} = Header) ->
    Options = maps:get(options, Header, #{}),
    Wrong = [What || {false, What} <- [
        {is_map(Options) andalso are_atoms(maps:get(outside, Options, [])), ~"its options are none"},
        {is_map(Calls), ~"its table of calls is none"},
        {are_digests(Digests), ~"the digests of its modules are none"},
        {are_atoms(maps:get(applications, Header, [])), ~"its applications are none"},
        {is_call(Header), ~"what it calls is no function"}]],
    case {Code, Wrong} of
        {#{pa := Folders, weave := Weave}, []} ->
            case are_atoms(Weave) andalso is_proper(Folders) of
                true -> folders(Folders);
                false -> {error, {witness_replay, {header, ~"its folders are none"}}}
            end;
        {#{pa := _, weave := _}, [What | _]} -> {error, {witness_replay, {header, What}}};
        _ -> {error, {witness_replay, {header, ~"its folders are none"}}}
    end;
check(_) -> {error, {witness_replay, no_code}}.

folders(Folders) ->
    case [Folder || Folder <- Folders, not is_folder(Folder)] of
        [] -> ok;
        [Folder | _] -> {error, {witness_replay, {header, [~"a folder in it is not absolute: ", term(Folder)]}}}
    end.

is_folder(Name) ->
    (is_binary(Name) orelse io_lib:char_list(Name)) andalso
        try filename:pathtype(Name) =:= absolute catch error:_ -> false end.

is_call(#{run := {M, F, Args}}) -> is_atom(M) andalso is_atom(F) andalso is_proper(Args);
is_call(#{run := _}) -> false;
is_call(#{app := App}) -> is_atom(App);
is_call(_) -> true.

are_digests(Digests) ->
    is_map(Digests) andalso lists:all(fun is_digest/1, maps:to_list(Digests)).

is_digest({Module, Digest}) -> is_atom(Module) andalso is_binary(Digest).

are_atoms(Names) -> is_proper(Names) andalso lists:all(fun is_atom/1, Names).

is_proper(Terms) -> is_list(Terms) andalso try length(Terms) >= 0 catch error:badarg -> false end.

-doc "What a header names. It has passed `check/1`.".
-spec named(map()) -> named().
named(#{code := #{pa := Folders}, digests := Digests} = Header) ->
    Known = otp(maps:keys(Digests)),
    {Otp, Others} = lists:partition(fun({Module, Digest}) -> maps:get(Module, Known, none) =:= Digest end,
                                    lists:sort(maps:to_list(Digests))),
    #{call => call(Header), folders => Folders, modules => Others, otp => length(Otp)}.

call(#{run := {Module, Function, Args} = Run}) ->
    witness_event:format_signature({Module, Function, Args}, witness_event:syntax_of_function(Run));
call(#{app := App}) -> <<"the application ", (term(App))/binary>>;
call(#{}) -> none.

%% The digests of the modules in those folders of this Erlang/OTP that have one of these. The files are read as data, and their
%% digests are kept.
otp(Modules) ->
    Files = [File || Module <- Modules, File <- [code:where_is_file(lists:flatten(io_lib:format("~ts.beam", [Module])))],
             is_list(File),
                     lists:prefix(code:lib_dir() ++ "/", File)],
    case witness_weave_objects:read(lists:usort([filename:dirname(File) || File <- Files]), witness_record_code:cache(#{})) of
        {ok, Folders} -> witness_record_code:digests(Folders);
        {error, _} -> #{}
    end.

-doc "The same as text, with the reason why it may not run.".
-spec format(unicode:chardata(), named()) -> unicode:chardata().
format(Why, #{call := Call, folders := Folders, modules := Modules, otp := Otp}) ->
    [~"this account has not recorded it on this machine as it is, and a replay runs the code that it names (docs/threat-model.md)\n  why:     ",
     Why,
     [[~"\n  calls:   ", Call] || Call =/= none],
     listed(~"folders: ", [term(Folder) || Folder <- Folders]),
     listed(~"modules: ", [[term(Module), ~", digest ", binary:encode_hex(Digest, lowercase)] || {Module, Digest} <- Modules]),
     [[~"\n           ", integer_to_binary(Otp), ~" modules are those of this Erlang/OTP"] || Otp > 0],
     ~"\nIf that code may run here, --trust (in a program trust => true) replays it."].

listed(_, []) -> [];
listed(Name, [First | Others]) ->
    Shown = lists:sublist(Others, ?MAX_LINES),
    [~"\n  ", Name, First, [[~"\n           ", Line] || Line <- Shown],
     [[~"\n           and ", integer_to_binary(length(Others) - ?MAX_LINES), ~" more"] || length(Others) > ?MAX_LINES]].

term(Term) -> witness_event:format_term(Term, ?MAX_TERM_CHARS).
