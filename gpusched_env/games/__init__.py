"""Games in rooms: each folder is whole, from the problem to the papers, and nothing outside of it imports it.

A game's ``room.py`` says where its parts are. The line of :data:`gpusched_env.scenarios.games.GAMES` that names the
room is the only way to it.
"""
