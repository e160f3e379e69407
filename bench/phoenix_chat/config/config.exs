import Config

config :chat, Chat.Endpoint,
  secret_key_base: String.duplicate("a", 64),
  server: false,
  pubsub_server: Chat.PubSub,
  render_errors: [formats: [json: Chat.ErrorJSON]]

config :phoenix, :json_library, Jason
config :logger, level: :warning
