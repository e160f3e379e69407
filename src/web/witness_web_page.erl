-module(witness_web_page).
-moduledoc """
The page of a report: one HTML file that contains its script and its style, made from `assets/` by `assets/build`. This module puts
the data into it.

Its content security policy allows its own script and style, by their hashes, and nothing else: nothing is fetched.
The data replaces a mark in a `<script>` of type `application/json`, which no browser runs.
""".

-export([read/1, check_writable/1, write/3]).

-export_type([page/0]).

-doc "A page without data: the text before the data, and the text after it.".
-opaque page() :: {binary(), binary()}.

-define(MARK, ~"@WITNESS-DATA@").

-doc "Reads a page, or the `built` one. An error is text for people.".
-spec read(built | file:filename()) -> {ok, page()} | {error, unicode:chardata()}.
read(built) ->
    case code:priv_dir(witness) of
        {error, bad_name} -> {error, ~"the folder priv of Witness is not there"};
        Folder -> read(filename:join([Folder, "web", "report.html"]))
    end;
read(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case binary:split(Text, ?MARK, [global]) of
                [Before, After] -> {ok, {Before, After}};
                _ -> {error, [witness_text:clean(File), ~" is not the page of a report"]}
            end;
        {error, enoent} ->
            {error, [~"the page of reports is not built, which takes Node.js 20.19 or later with npm on PATH ",
                     ~"(assets/build)"]};
        {error, Reason} -> file_error(File, Reason)
    end.

-doc "Whether a file can be written there. Makes its folder.".
-spec check_writable(file:filename()) -> ok | {error, unicode:chardata()}.
check_writable(File) ->
    Folder = filename:dirname(File),
    case filelib:ensure_path(Folder) of
        ok ->
            case filelib:is_dir(File) of
                true -> file_error(File, eisdir);
                false -> with_temporary(File, fun(_, _) -> ok end)
            end;
        {error, Reason} -> file_error(Folder, Reason)
    end.

-doc "Writes the page with its data. Only its owner may read it: it contains the messages of processes.".
-spec write(file:filename(), Json :: binary(), page()) -> ok | {error, unicode:chardata()}.
write(File, Json, {Before, After}) ->
    with_temporary(File, fun(Device, Temporary) ->
        maybe
            ok ?= file:write(Device, [Before, Json, After]),
            ok ?= file:close(Device),
            file:rename(Temporary, File)
        end
    end).

%% A report is complete or missing, and other users can never read it.
with_temporary(File, Write) ->
    Temporary = File ++ [$. | os:getpid()] ++ [$- | integer_to_list(erlang:unique_integer([positive]))],
    Written = maybe
        {ok, Device} ?= file:open(Temporary, [write, exclusive, raw, binary]),
        try
            maybe
                ok ?= file:change_mode(Temporary, 8#600),
                Write(Device, Temporary)
            end
        after
            _ = file:close(Device),
            _ = file:delete(Temporary)
        end
    end,
    case Written of
        ok -> ok;
        {error, Reason} -> file_error(File, Reason)
    end.

file_error(File, Reason) -> {error, [witness_text:clean(File), ~": ", file:format_error(Reason)]}.
