-module(witness_web_page).
-moduledoc """
The page of a report: one HTML file with its script and its style in it, made from `assets/` by `assets/build`, and
the data put into it.

Its content security policy allows its own script and style, by their hashes, and nothing else: nothing is fetched.
The data stands in a `<script>` of type `application/json`, which no browser runs, in the place of a mark.
""".

-export([read/1, writable/1, write/3]).

-export_type([page/0]).

-doc "A page without data: what stands before the data, and behind it.".
-opaque page() :: {binary(), binary()}.

-define(MARK, ~"@WITNESS-DATA@").

-doc "Reads a page, or the one that was `built`. An error is text for people.".
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
        {error, Reason} -> problem(File, Reason)
    end.

-doc "Whether a file can be written there. Makes its folder.".
-spec writable(file:filename()) -> ok | {error, unicode:chardata()}.
writable(File) ->
    Folder = filename:dirname(File),
    case filelib:ensure_path(Folder) of
        ok ->
            case filelib:is_dir(File) of
                true -> problem(File, eisdir);
                false -> with_temporary(File, fun(_, _) -> ok end)
            end;
        {error, Reason} -> problem(Folder, Reason)
    end.

-doc "Writes the page with its data, which nobody but its owner may read: it holds what processes say to each other.".
-spec write(file:filename(), Json :: binary(), page()) -> ok | {error, unicode:chardata()}.
write(File, Json, {Before, After}) ->
    with_temporary(File, fun(Device, Temporary) ->
        maybe
            ok ?= file:write(Device, [Before, Json, After]),
            ok ?= file:close(Device),
            file:rename(Temporary, File)
        end
    end).

%% A report is there as a whole or not at all, and is readable by others at no time.
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
        {error, Reason} -> problem(File, Reason)
    end.

problem(File, Reason) -> {error, [witness_text:clean(File), ~": ", file:format_error(Reason)]}.
