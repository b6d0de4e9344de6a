"""Everything headless: configuration, servers, rollouts, metrics. Imports neither textual nor a screen."""
