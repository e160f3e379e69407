-module(witness_cli_format).
-moduledoc """
`witness format`: rewrites specifications in the layout of `m:witness_spec_format`.

A file is replaced as a whole, and only if that changes it: it has the old text or the new one, whatever happens. A file with errors
stays as it is. The new file has the permissions of the old one; what a link names is replaced, not the link.
""".

-export([run/1, command/0]).

-export_type([options/0]).

-include_lib("kernel/include/file.hrl").

-doc "See `command/0`.".
-type options() :: #{files := [{file, string()} | standard_input], check := boolean(), json := boolean()}.

-define(MAX_LINKS, 32).

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Formats specifications: rewrites files in place, if that changes them. A file with errors stays as it is. In the names of "
               "files a folder stands for its .hml files and those in its folders, and - for standard input, of which the "
               "formatted text is printed.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 all are formatted; 1 one is not (--check); 2 wrong usage, or a file with errors.\n\n"
               "  witness format specs\n"
               "  witness format --check specs\n"
               "  witness format - < calc.hml\n"],
      arguments => witness_cli_options:arguments(format, [
        #{name => check, flag => "--check", text => ~"write nothing, and name the files that are not formatted"},
        witness_cli_options:json(~"print results and diagnostics as one JSON object a line"),
        #{name => files, argument => "FILE.hml|DIR|-", repeated => true, text => ~"the specifications"}])}.

-doc "Formats the files; returns the exit code, or an error in the arguments.".
-spec run(options()) -> {ok, 0..2} | {error, unicode:chardata()}.
run(#{files := Given, json := Json} = Options) ->
    maybe
        {ok, Files} ?= files(Given),
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        Header = witness_cli_json:header(node()),
        {ok, lists:max([file(File, Options, Out, Header) || File <- Files])}
    end.

files([standard_input]) -> {ok, [standard_input]};
files(Given) ->
    case lists:member(standard_input, Given) of
        true -> {error, ~"- stands for standard input, and is the only file then"};
        false -> expand(Given, [])
    end.

expand([{file, Name} | Given], Files) ->
    case filelib:is_dir(Name) of
        false -> expand(Given, [Name | Files]);
        true ->
            case specifications(Name) of
                [] -> {error, [witness_text:clean(Name), ~": there is no .hml file in this folder"]};
                Found -> expand(Given, lists:reverse(Found, Files))
            end
    end;
expand([], Files) -> {ok, lists:uniq(lists:reverse(Files))}.

%% Links to folders are not followed, and hidden folders and those of build tools are not the user's own.
specifications(Folder) ->
    {ok, Names} = case file:list_dir(Folder) of {ok, _} = Listed -> Listed; {error, _} -> {ok, []} end,
    Path = fun(Name) -> case Folder of "." -> Name; _ -> filename:join(Folder, Name) end end,
    lists:append([specifications(Path(Name), Name) || Name <- lists:sort(Names)]).

specifications(Path, [First | _] = Name) ->
    case file:read_link_info(Path) of
        {ok, #file_info{type = directory}} when First =/= $., Name =/= "_build", Name =/= "deps" -> specifications(Path);
        {ok, #file_info{type = directory}} -> [];
        {ok, _} -> [Path || filename:extension(Name) =:= ".hml", filelib:is_regular(Path)];
        {error, _} -> []
    end.

file(File, Options, Out, Header) ->
    maybe
        {ok, Source, Formatted} ?= formatted(File),
        Changed = Formatted =/= Source,
        ok ?= case Changed andalso writes(File, Options) of true -> write(File, Formatted); false -> ok end,
        witness_cli_io:print(Out, result(File, Changed, Formatted, Options, Header)),
        case Options of
            #{check := true} when Changed -> 1;
            #{} -> 0
        end
    else
        {error, {witness_spec, Diagnostics}} ->
            diagnostics(Diagnostics, Options, Out, Header),
            2
    end.

writes(File, #{check := Check}) -> File =/= standard_input andalso not Check.

name(standard_input) -> ~"standard input";
name(File) -> unicode:characters_to_binary(File).

formatted(standard_input) ->
    maybe
        {ok, Input} ?= witness_log_input:open(standard_input),
        {ok, Source} ?= read(Input, []),
        witness_spec_format:string(name(standard_input), Source)
    else
        {error, Reason} when is_atom(Reason) -> failed(standard_input, "cannot read it: ", Reason);
        {error, _} = Error -> Error
    end;
formatted(File) ->
    case file:read_file_info(File) of
        {ok, #file_info{type = Type}} when Type =/= regular -> failed(File, "it is not a file", none);
        _ -> witness_spec_format:file(File)
    end.

%% Not much more is read than a specification may have.
read(Input, Pieces) ->
    case iolist_size(Pieces) > witness_spec_scan:max_bytes() orelse witness_log_input:read(Input, 65_536) of
        {ok, Bytes, Next} -> read(Next, [Pieces, Bytes]);
        {error, _} = Error -> Error;
        _ -> {ok, iolist_to_binary(Pieces)}
    end.

failed(File, Text, Reason) ->
    Why = case Reason of none -> ""; _ -> file:format_error(Reason) end,
    Finding = witness_spec_diagnostic:error(undefined, unwritable, [Text, Why]),
    {error, {witness_spec, witness_spec_diagnostic:locate([Finding], name(File), [])}}.

write(File, Formatted) ->
    Target = target(File, ?MAX_LINKS),
    Temporary = Target ++ [$. | os:getpid()] ++ [$- | integer_to_list(erlang:unique_integer([positive]))],
    Written = maybe
        {ok, #file_info{access = Access} = Info} ?= file:read_file_info(Target),
        ok ?= case Access of read_write -> ok; _ -> {error, eacces} end,
        {ok, Device} ?= file:open(Temporary, [write, exclusive, raw, binary]),
        try
            replace(Device, Formatted, Temporary, Info, Target)
        after
            _ = file:close(Device),
            _ = file:delete(Temporary)
        end
    end,
    case Written of
        ok -> ok;
        {error, Reason} -> failed(File, "cannot write the file: ", Reason)
    end.

%% Only a superuser can keep the owner of a file of another user. The owner first: a change of it takes permissions away.
replace(Device, Formatted, Temporary, #file_info{mode = Mode, uid = Uid, gid = Gid}, Target) ->
    maybe
        ok ?= file:write(Device, Formatted),
        ok ?= file:sync(Device),
        ok ?= file:close(Device),
        _ = file:change_owner(Temporary, Uid, Gid),
        ok ?= file:change_mode(Temporary, Mode band 8#7777),
        file:rename(Temporary, Target)
    end.

target(File, 0) -> File;
target(File, Links) ->
    case file:read_link_all(File) of
        {ok, Other} -> target(filename:absname(Other, filename:dirname(File)), Links - 1);
        {error, _} -> File
    end.

diagnostics(Diagnostics, #{json := true}, Out, Header) ->
    witness_cli_io:print(Out, [witness_cli_json:diagnostic(Diagnostic, Header) || Diagnostic <- Diagnostics]);
diagnostics(Diagnostics, #{json := false}, _, _) ->
    witness_cli_io:note([[string:trim(witness_spec:format_diagnostic(Diagnostic), trailing, "\n"), $\n] || Diagnostic <- Diagnostics]).

result(File, Changed, Formatted, #{json := true} = Options, Header) ->
    Text = case File of standard_input -> Formatted; _ -> undefined end,
    witness_cli_json:formatted(name(File), Changed, Changed andalso writes(File, Options), Text, Header);
result(standard_input, _, Formatted, #{check := false}, _) -> Formatted;
result(_, false, _, _, _) -> [];
result(File, true, _, #{check := true}, _) -> [witness_text:clean(name(File)), ~": not formatted\n"];
result(File, true, _, _, _) -> [witness_text:clean(name(File)), ~": formatted\n"].
