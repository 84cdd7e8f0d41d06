"""The Gymnasium face: environment, observations, actions, masks, rendering, registration."""
