"""Statistics: ranks, bootstrap, rank inference, participation adjustment, apportionment."""
